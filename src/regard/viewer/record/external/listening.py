"""Listening to a model of another library: whoever calls dot-product attention inside it.

Three ways lead here. An attention function that knows the listeners, such as that of `regard.huggingface`, hands each call
over. Calls of `F.scaled_dot_product_attention` reach a mode of PyTorch's, and belong to the innermost module that runs.
`nn.MultiheadAttention` computes its projections inside one function, so its call is repeated from its inputs.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from regard.viewer.record.external.listeners import LISTENERS
from regard.viewer.record.external.product import Product
from regard.viewer.record.external.runs import ModelRun, ProductCall, record_product
from regard.viewer.record.hooks import instead
from regard.viewer.record.provenance import bind_arguments

if TYPE_CHECKING:
    from regard.viewer.record import Recorder

CROSS = re.compile(r"cross|encoder_attn|encdec|enc_dec|encoder_decoder", re.IGNORECASE)
"""Names of attentions over another sequence."""
OTHER = ("key_value_states", "encoder_hidden_states")
"""Arguments of an attention that are another sequence."""


class External:
    """Listener of one recorder to a model without attentions of ours."""

    def __init__(self, recorder: "Recorder", model: nn.Module):
        self.recorder, self.model = recorder, model
        self.names = {module: path or "attention" for path, module in model.named_modules()}
        self.running: list[nn.Module] = []
        self.crossing: dict[nn.Module, bool] = {}
        self.hidden_keys: Tensor | None = None
        self.hides_cross = False
        self.busy = False
        self.order: dict[str, int] = {}

    @property
    def encoder(self) -> nn.Module | None:
        """The encoder of an encoder-decoder, which `generate` calls by itself."""
        if not getattr(getattr(self.model, "config", None), "is_encoder_decoder", False):
            return None
        find: Any = getattr(self.model, "get_encoder", None)
        encoder = find() if callable(find) else None
        return encoder if isinstance(encoder, nn.Module) and encoder is not self.model else None

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Hear every call inside."""
        with ExitStack() as stack:
            LISTENERS.append(self)
            stack.callback(LISTENERS.remove, self)
            for module in self.names:
                stack.callback(module.register_forward_pre_hook(self._enter, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(self._leave, always_call=True).remove)
                if isinstance(module, nn.MultiheadAttention):
                    stack.enter_context(instead(module, "forward", partial(self._attend_heads, module, module.forward)))
            if self.encoder is not None:
                stack.callback(self.encoder.register_forward_pre_hook(self._enter_encoder, with_kwargs=True).remove)
            if callable(getattr(self.model, "generate", None)):
                generate: Any = self.model.generate
                stack.enter_context(instead(self.model, "generate", partial(self._generate, generate)))
            stack.enter_context(Calls(self))
            yield

    def continues(self, module: nn.Module, args: Any, kwargs: Any) -> bool:
        """True if a pass goes on with the run before: its cache is filled, or its encoder has just run by itself."""
        runs = self.recorder.runs
        if not runs or not isinstance(runs[-1], ModelRun):
            return False
        inputs = bind_arguments(module, args, kwargs)
        cache = inputs.get("past_key_values")
        length = getattr(cache, "get_seq_length", None)
        filled = callable(length) and int(length()) > 0
        return filled or not runs[-1].has_decoded or runs[-1].generating

    def take_inputs(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Keep the inputs of a pass that axes are made of."""
        self.run.add_pass(bind_arguments(module, args, kwargs))

    @property
    def run(self) -> ModelRun:
        """The current run."""
        if not self.recorder.runs:
            self.recorder.begin()
        run = self.recorder.runs[-1]
        assert isinstance(run, ModelRun), "this recorder has no other kind"
        return run

    def _enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        self.running.append(module)
        if "attention" in type(module).__name__.lower():
            self.crossing[module] = any(kwargs.get(name) is not None for name in OTHER)

    def _leave(self, module: nn.Module, *_: Any) -> None:
        while self.running and self.running.pop() is not module:
            pass

    def _enter_encoder(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self.recorder.depth == 0 and not self.recorder.silent:
            if not (self.recorder.runs and self.run.generating and not self.run.passes):
                self.recorder.begin()
            self.run.passes.append({})
            self.run.has_decoded = False
            inputs = bind_arguments(module, args, kwargs)
            self.run.passes[0] |= {name: value.detach().cpu() for name, value in inputs.items() if isinstance(value, Tensor)}

    def _generate(self, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Generate as asked; which row became which answer is kept."""
        if self.recorder.silent or self.recorder.depth:
            return original(*args, **options)
        self.recorder.begin()
        run = self.run
        run.generating = True
        config = options.get("generation_config") or getattr(self.model, "generation_config", None)
        wants = options.pop("return_dict_in_generate", getattr(config, "return_dict_in_generate", False))
        try:
            output = original(*args, return_dict_in_generate=True, **options)
        finally:
            run.generating = False
        run.output = output if hasattr(output, "sequences") else None
        return output if wants or run.output is None else output.sequences

    def records(self, module: nn.Module) -> bool:
        """True if this module is a part of the model, and recorded now."""
        return module in self.names and not self.recorder.silent

    def selects(self, name: str) -> bool:
        """True if an attention is among the chosen layers: numbers in the order of the calls, or parts of names."""
        layers = self.recorder.wanted.layers
        number = self.order.setdefault(name, len(self.order))
        return layers is None or any(number == layer if isinstance(layer, int) else layer in name for layer in layers)

    def hear(self, module: nn.Module, product: Product, run: Callable[[Product], Tensor], kernel: str) -> Tensor:
        """The context of a call, which is recorded."""
        if self.hidden_keys is not None:  # a check, which records nothing
            hides = self.crosses(module, product) == self.hides_cross
            self.busy = True
            try:
                return run(hide_keys(product, self.hidden_keys) if hides else product)
            finally:
                self.busy = False
        name = self.run.name_call(self.names[module])
        cross = self.crosses(module, product)
        self.recorder.itself[name] = not cross
        self.busy = True
        try:
            if not self.selects(name):
                return run(product)
            if not self.recorder.wanted.gradients:
                context, begun = run(product), time.perf_counter()
                self._record(name, product, cross, kernel, begun)
                return context
            begun, weights = time.perf_counter(), product.all_weights()
            if not weights.requires_grad:
                raise ValueError(
                    f"gradients of the weights need a pass that records gradients, and {name} ran without; leave "
                    "torch.no_grad() out, and give record a model whose parameters require gradients"
                )
            call = self._record(name, product, cross, kernel, begun, weights)
            weights.register_hook(call.gradient.append)  # type: ignore[no-untyped-call]
            return product.combine(F.dropout(weights, product.dropout) if product.dropout else weights)
        finally:
            self.busy = False

    def crosses(self, module: nn.Module, product: Product) -> bool:
        """True if the keys of an attention are another sequence than its queries."""
        around = [owner for owner in self.running[-3:] if self.crossing.get(owner)]
        return bool(around) or bool(CROSS.search(self.names[module].rpartition(".")[2]))

    def _record(
        self, name: str, product: Product, cross: bool, kernel: str, begun: float, weights: Tensor | None = None
    ) -> ProductCall:
        place = self.run.queries(name), cross
        call = record_product(self.run, product, self.recorder.wanted, place, kernel, weights)
        self.recorder.add(name, call, kernel, begun)
        return call

    @property
    def advice(self) -> str:
        """Advice on how attentions of this model can be recorded, where none was."""
        config = getattr(self.model, "config", None)
        implementation = getattr(config, "_attn_implementation", None)
        if implementation in (None, "regard", "sdpa"):
            return ""
        return (
            f'; it was loaded with attn_implementation="{implementation}", which nobody can listen to: import '
            'regard.huggingface and load it with attn_implementation="regard"'
        )

    def innermost(self) -> nn.Module | None:
        """The innermost module that runs."""
        return self.running[-1] if self.running else None

    def _attend_heads(self, module: nn.MultiheadAttention, original: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """A multi-head attention as it is called, and its product once more from the projections of its inputs."""
        busy, self.busy = self.busy, True
        try:
            result = original(*args, **options)
            if self.recorder.silent or self.recorder.wanted.gradients:
                return result
            with torch.no_grad():
                inputs = bind_arguments(module, args, options, nn.MultiheadAttention.forward)
                product = project_heads(module, inputs)
            cross = inputs["query"] is not inputs["key"]
            name = self.run.name_call(self.names[module])
            self.recorder.itself[name] = not cross
            if self.selects(name):
                self._record(name, product, cross, "multi_head_attention", time.perf_counter())
            return result
        finally:
            self.busy = busy


def find_attentions(model: nn.Module) -> dict[str, nn.Module]:
    """The innermost modules of a model whose class is called an attention."""
    named = {path or "attention": module for path, module in model.named_modules()}
    kinds = {path: module for path, module in named.items() if "attention" in type(module).__name__.lower()}
    return {path: module for path, module in kinds.items() if not any(other.startswith(f"{path}.") for other in kinds)}


class Calls(TorchFunctionMode):
    """Sees calls of `F.scaled_dot_product_attention` by modules of a model."""

    def __init__(self, listener: External):
        super().__init__()
        self.listener = listener

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        module = self.listener.innermost()
        plain = func is not F.scaled_dot_product_attention or module is None or self.listener.busy
        if plain or not self.listener.records(module):  # type: ignore[arg-type]  # it is no None
            return func(*args, **kwargs)
        assert module is not None, "one runs"
        product = describe_call(*args, **kwargs)
        grouped = kwargs.get("enable_gqa", False)

        def run(changed: Product) -> Tensor:
            if changed is product:
                return func(*args, **kwargs)
            mask = changed.mask
            return F.scaled_dot_product_attention(
                changed.query,
                changed.key,
                changed.value,
                mask,
                changed.dropout,
                changed.causal,
                scale=changed.scale,
                enable_gqa=grouped,
            )

        if product.query.ndim != 4:
            return func(*args, **kwargs)
        return self.listener.hear(module, product, run, "sdpa")


def describe_call(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Product:
    """The product of a call of `F.scaled_dot_product_attention`, whose mask may have fewer dimensions."""
    if query.ndim == 3:
        query, key, value = (tensor[:, None] for tensor in (query, key, value))
    if attn_mask is not None:
        attn_mask = attn_mask[(None,) * (4 - attn_mask.ndim)]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return Product(query, key, value, scale, attn_mask, is_causal, dropout=dropout_p)


def project_heads(module: nn.MultiheadAttention, inputs: dict[str, Any]) -> Product:
    """The product of a call of `nn.MultiheadAttention`, from the projections of its inputs."""
    query, key, value = (inputs[name] for name in ("query", "key", "value"))
    if query.ndim == 2:
        query, key, value = (tensor[None] if module.batch_first else tensor[:, None] for tensor in (query, key, value))
    if not module.batch_first:
        query, key, value = (tensor.transpose(0, 1) for tensor in (query, key, value))
    bias: Any = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    if module.in_proj_weight is not None:
        parts: Any = module.in_proj_weight.chunk(3)
    else:
        parts = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    query, key, value = (F.linear(data, W, b) for data, W, b in zip((query, key, value), parts, bias, strict=True))
    batch, heads = len(query), module.num_heads
    if module.bias_k is not None and module.bias_v is not None:
        key = torch.cat([key, module.bias_k.transpose(0, 1).expand(batch, 1, -1)], dim=1)
        value = torch.cat([value, module.bias_v.transpose(0, 1).expand(batch, 1, -1)], dim=1)
    if module.add_zero_attn:
        key, value = F.pad(key, (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1))
    query, key, value = (data.reshape(*data.shape[:2], heads, -1).transpose(1, 2) for data in (query, key, value))
    mask = _merge_masks(inputs, batch, heads, key.shape[2])
    return Product(query, key, value, query.shape[-1] ** -0.5, mask)


def _merge_masks(inputs: dict[str, Any], batch: int, heads: int, keys: int) -> Tensor | None:
    """The masks of `nn.MultiheadAttention` as one that is added; in boolean ones True hides a key."""
    added = None
    for name in ("attn_mask", "key_padding_mask"):
        mask = inputs.get(name)
        if mask is None:
            continue
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, device=mask.device).masked_fill(mask, float("-inf"))
        if name == "key_padding_mask":
            mask = mask.reshape(-1, 1, 1, mask.shape[-1])
        else:
            mask = mask.view(batch, heads, *mask.shape[1:]) if mask.ndim == 3 else mask[None, None]
        mask = F.pad(mask, (0, keys - mask.shape[-1]))  # of keys that the module adds
        added = mask if added is None else added + mask
    return added


def hide_keys(product: Product, hidden: Tensor) -> Product:
    """A product that does not see the `hidden` keys, (batch, keys), where it has as many; rows keep their own place."""
    if hidden.shape[1] != product.keys or len(hidden) != product.batch:
        return product
    allowed = product.allowed(0, product.queries)
    seen = ~hidden.to(product.query.device)[:, None, None, :]
    allowed = seen.expand(-1, -1, product.queries, -1) if allowed is None else allowed & seen
    blind = ~allowed.any(-1, keepdim=True)
    before = product.allowed(0, product.queries)
    allowed = torch.where(blind, torch.ones_like(allowed) if before is None else before.expand_as(allowed), allowed)
    if product.mask is not None and product.mask.dtype != torch.bool:
        return replace(product, mask=product.mask.masked_fill(~allowed, torch.finfo(product.mask.dtype).min))
    return replace(product, mask=allowed, causal=False)
