-- Appends the values of a batch to the stream KEYS[1], without those that it has got before. KEYS[2] has the
-- numbers of the origin's values that it has got, as ranges without their ends: "0-4000 4100-9000". As long as
-- no value is dropped, it is one range, whose end is the high-water mark.
--
-- ARGV: the first value's number, the origin, the stream's length, how many milliseconds the ranges are kept;
-- then for each value the number of its labels, time, group, name, value, metadata, and its labels, of which the
-- first of a key counts.
--
-- Redis runs a script as one transaction, but does not undo what it has written before an error. So what can
-- fail, such as a command that the user may not call, fails before the first value is appended.
local ranges = redis.call('GET', KEYS[2]) or ''
redis.call('SET', KEYS[2], ranges, 'PX', ARGV[4])

local first, values, at = tonumber(ARGV[1]), {}, 5
while ARGV[at] do
    values[#values + 1] = at
    at = at + 6 + 2 * ARGV[at]
end

-- The ranges that the batch touches become one with it: from..to.
local last = first + #values
local from, to, others, has = first, last, {}, {}
for low, high in ranges:gmatch('(%d+)-(%d+)') do
    low, high = tonumber(low), tonumber(high)
    if high < first or low > last then
        others[#others + 1] = {low, high}
    else
        from, to = math.min(from, low), math.max(to, high)
        for number = math.max(first, low), math.min(last, high) - 1 do
            has[number] = true
        end
    end
end

local repeats = 0
for i, at in ipairs(values) do
    local number = first + i - 1
    if has[number] then
        repeats = repeats + 1
    else
        local entry = {'origin', ARGV[2], 'sequence', number, 'time', ARGV[at + 1], 'group', ARGV[at + 2],
            'name', ARGV[at + 3], 'value', ARGV[at + 4]}
        if ARGV[at + 5] ~= '' then
            entry[#entry + 1] = 'metadata'
            entry[#entry + 1] = ARGV[at + 5]
        end
        local keys = {}
        for label = at + 6, at + 5 + 2 * ARGV[at], 2 do
            local key = ARGV[label]
            if not keys[key] then
                entry[#entry + 1] = 'label.' .. key
                entry[#entry + 1] = ARGV[label + 1]
            end
            keys[key] = true
        end
        redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', unpack(entry))
    end
end

-- Of more than 1,000 ranges the lowest are forgotten.
others[#others + 1] = {from, to}
table.sort(others, function(a, b) return a[1] < b[1] end)
local parts = {}
for i = math.max(1, #others - 999), #others do
    parts[#parts + 1] = string.format('%.0f-%.0f', others[i][1], others[i][2])
end
redis.call('SET', KEYS[2], table.concat(parts, ' '), 'PX', ARGV[4])
return repeats
