"""Parses <weir/weir.h> and the headers it includes (the API for programs), or <weir/handler.h> and <weir/source.h> (the API for plugins)."""

import os
import re


class Header:
    def __init__(self, source, names=("weir.h", "types.h", "version.h.in")):
        text = ""
        for name in names:
            with open(os.path.join(source, "include", "weir", name), encoding="utf-8") as file:
                text += file.read()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self._text = re.sub(r"\s+WEIR_PRINTF\(\d, \d\)", "", text)

    def prototypes(self):
        """Declarations of functions, by name."""
        found = {}
        for declaration in re.findall(r"^WEIR_API ([^;]*);", self._text, re.M):
            found[re.search(r"(weir_\w+)\(", declaration).group(1)] = normal(declaration)
        return found

    def macros(self):
        """Function-like macros."""
        return set(re.findall(r"#define (WEIR_\w+)\(", self._text))

    def constants(self):
        """Enumerators and constant macros."""
        enumerators = set()
        for body in re.findall(r"enum (?:\w+ )?\{(.*?)\};", self._text, re.S):
            enumerators |= {item.split("=")[0].strip() for item in body.split(",") if item.strip()}
        return enumerators | set(re.findall(r"#define (WEIR_VERSION\w*) ", self._text))

    def structures(self):
        """The field declarations of each structure, in order."""
        found = {}
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", self._text, re.S):
            body = re.sub(r"union \{(.*?)\}", lambda found: "union { " + found[1].replace(";", ",").strip().rstrip(",") + " }", body, flags=re.S)
            found[name] = [normal(field) for field in body.split(";") if field.strip()]
        return found

    def services(self):
        """The macros that name services."""
        return set(re.findall(r'#define (WEIR_\w+) "\w+/\d+"', self._text))


def normal(declaration):
    """Normalizes white space."""
    return re.sub(r"\* ", "*", " ".join(declaration.split()))
