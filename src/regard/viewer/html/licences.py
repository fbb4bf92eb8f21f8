"""What the page is built from, by whom, and on what terms: printed in its About."""

MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "Software"), to deal in the Software without restriction, including without '
    "limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of "
    "the Software, and to permit persons to whom the Software is furnished to do so, subject to the following "
    "conditions: The above copyright notice and this permission notice shall be included in all copies or "
    'substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, '
    "EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR "
    "PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, "
    "DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN "
    "CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."
)
"""The words of the MIT licence, which must go wherever the software goes."""

LICENCES = [
    {"name": name, "licence": "MIT", "text": f"Copyright (c) {holder}\n\n{MIT}"}
    for name, holder in (
        ("preact 11.2.0", "2015-present Jason Miller"),
        ("@preact/signals 2.11.4 and signals-core 1.14.5", "2022-present Preact Team"),
        ("@dagrejs/dagre 3.1.1 and graphlib 4.0.5", "2012-2014 Chris Pettitt"),
    )
]
