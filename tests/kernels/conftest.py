"""Triton's interpreter as tests need it: with today's NumPy, products of bfloat16, and without dressing its language anew for every function."""

import importlib.util

if importlib.util.find_spec("triton") is not None:
    from triton.runtime import interpreter

    tensor_before, language_before = interpreter._patch_lang_tensor, interpreter._patch_lang
    dressed: dict[frozenset, object] = {}

    def tensor(kind, scope):
        """Bounds of loops are arrays of one number, which NumPy 2.4 no longer turns into that number."""
        tensor_before(kind, scope)
        scope.set_attr(kind, "__index__", lambda self: int(self.handle.data.item()))

    def language(function):
        """Once for each launch: a program calls other functions hundreds of times, and each would do it again."""
        known = interpreter.tl, interpreter.tl.core
        key = frozenset(number for number, each in enumerate(known) if each in _modules(function))
        if key not in dressed:
            first = not dressed
            scope = dressed[key] = language_before(function)
            if first:
                undress = scope.restore
                scope.restore = lambda: (dressed.clear(), undress())
        return dressed[key]

    def _modules(function):
        return [each for each in function.__globals__.values() if isinstance(each, type(importlib))]

    def dot(self, a, b, d, *options):
        """bfloat16 is kept as whole numbers of 16 bits, and these would be multiplied."""
        wide = [
            self.cast_impl(each, interpreter.tl.float32) if each.dtype == interpreter.tl.bfloat16 else each
            for each in (a, b)
        ]
        return dot_before(self, *wide, d, *options)

    dot_before = interpreter.InterpreterBuilder.create_dot
    interpreter.InterpreterBuilder.create_dot = dot
    interpreter._patch_lang_tensor, interpreter._patch_lang = tensor, language
