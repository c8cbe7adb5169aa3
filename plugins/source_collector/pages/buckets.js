// The values of a series over time, in buckets of one width, as the server sends them; live values are added to them.

const FEWEST_RATES = 40;
const MOST_VALUES = 5000; // of one bucket, kept for its percentiles

export class Buckets {
    constructor(series, step) {
        this.series = series;
        this.step = step;
        this.points = [];
        this.total = null; // the latest running total
    }

    set(points, step) {
        this.step = step;
        this.points = points.map((point) => ({...point}));
        const last = this.points[this.points.length - 1];
        this.total = last ? last.last : null;
    }

    // Returns false if it is older than the latest bucket; the next request will bring it.
    add(time, value) {
        if (typeof value !== "number")
            return true;
        const at = Math.floor(time / this.step + 1e-9) * this.step;
        let last = this.points[this.points.length - 1];
        if (last && at < last.t - this.step / 2 && time < last.t)
            return false;
        if (!last || at >= last.t + this.step / 2)
            this.points.push(last = {t: at, count: 0, sum: 0, min: value, max: value, mean: value, last: value, increase: 0, values: []});
        put(last, value);
        last.increase = (last.increase || 0) + this.increaseOf(value);
        this.total = value;
        return true;
    }

    increaseOf(value) {
        if (!this.series.cumulative)
            return value;
        if (this.total === null)
            return 0;
        return value >= this.total ? value - this.total : value; // a fall is a restart
    }

    trim(from) {
        const keep = this.points.findIndex((point) => point.t >= from - this.step);
        if (keep > 0)
            this.points.splice(0, keep);
    }

    // Points {x, y} of what was counted per second. The bucket that is still filling is left out.
    rates(from, to, now) {
        return this.series.cumulative ? this.ratesOfTotals(now) : this.ratesOfIncrements(from, Math.min(to, now));
    }

    ratesOfTotals(now) {
        const found = [];
        for (let i = 1; i < this.points.length; i++) {
            const point = this.points[i], width = Math.max(point.t - this.points[i - 1].t, this.step);
            if (point.t + this.step <= now)
                found.push({x: point.t, y: finite(point.increase) / width});
        }
        return found;
    }

    // A bucket without an increment is 0, from the first one on that has any.
    ratesOfIncrements(from, to) {
        const found = [], start = Math.max(from, typeof this.series.first === "number" ? this.series.first : from);
        if (!this.points.length)
            return found;
        const width = this.step * this.widening((to - start) / this.step), counted = new Map();
        for (const point of this.points) {
            const index = Math.floor(point.t / width + 1e-6);
            counted.set(index, (counted.get(index) || 0) + finite(point.increase));
        }
        for (let i = Math.floor(start / width); (i + 1) * width <= to; i++)
            found.push({x: i * width, y: (counted.get(i) || 0) / width});
        return found;
    }

    // How many buckets to take together, where increments come less often than one in each: else the rate would jump to 0 between them.
    widening(buckets) {
        return Math.max(1, Math.min(Math.round(buckets / this.points.length), Math.floor(buckets / FEWEST_RATES)));
    }

    // All that was counted in the buckets that the time touches.
    counted(from, to) {
        const part = this.series.cumulative ? "increase" : "sum";
        return this.points.reduce((sum, point) => (point.t + this.step > from && point.t < to ? sum + finite(point[part]) : sum), 0);
    }

    line(part) {
        return this.points.filter((point) => typeof point[part] === "number").map((point) => ({x: point.t, y: point[part]}));
    }

    last() {
        const point = this.points[this.points.length - 1];
        return point ? point.last : null;
    }
}

function finite(value) {
    return typeof value === "number" ? value : 0;
}

function put(point, value) {
    point.count++;
    point.sum = finite(point.sum) + value;
    point.min = typeof point.min === "number" ? Math.min(point.min, value) : value;
    point.max = typeof point.max === "number" ? Math.max(point.max, value) : value;
    point.mean = point.sum / point.count;
    point.last = value;
    if (!point.values || point.values.length >= MOST_VALUES)
        return; // the server's percentiles stay until the next request
    point.values.push(value);
    const sorted = Float64Array.from(point.values).sort();
    point.p50 = percentile(sorted, 0.5);
    point.p99 = percentile(sorted, 0.99);
}

export function percentile(sorted, part) {
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] : undefined;
}

// Of points {x, y}: last, mean, max
export function figures(points) {
    let sum = 0, max = -Infinity;
    for (const point of points) {
        sum += point.y;
        max = Math.max(max, point.y);
    }
    return points.length ? {last: points[points.length - 1].y, mean: sum / points.length, max} : {last: null, mean: null, max: null};
}
