"""Networks that answer questions about stories, a file each; `model.kind` names one."""
