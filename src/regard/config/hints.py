"""Hints for an unknown setting: its name in another toolkit, its place in another group, or the nearest spelling.

The names are those of Hugging Face, fairseq, OpenNMT, JoeyNMT, ESPnet, Sockeye, Lightning and nanoGPT. None of them is
accepted: a setting has one name, and an error says which.
"""

import difflib
from collections.abc import Iterable, Sequence

FOREIGN = {
    "train.learning_rate": "lr alpha eta base_lr max_lr peak_lr init_lr initial_lr initial_learning_rate step_size",
    "train.max_steps": """steps n_steps num_steps train_steps num_train_steps total_steps total_num_update max_iter
        max_iters iterations num_iterations updates max_update max_updates max_num_updates""",
    "train.max_epochs": "epoch epochs n_epoch n_epochs nb_epoch num_epochs num_train_epochs max_epoch max_num_epochs",
    "train.max_minutes": "max_time stop_time_hours max_hours time_limit",
    "train.seed": "random_seed data_seed manual_seed rng_seed",
    "train.device": """use_cuda cuda gpu gpus ngpu no_cuda gpu_ranks world_size device_id device_ids accelerator cpu
        use_cpu""",
    "train.precision": """fp16 bf16 fp32 amp use_amp half half_precision mixed_precision memory_efficient_fp16
        model_dtype dtype""",
    "train.optimizer": "optim optimiser optim_type optimizer_type optimizer_name",
    "train.schedule": """lr_scheduler lr_schedule lr_scheduler_type scheduler scheduler_type scheduling decay_method
        lr_decay learning_rate_scheduling learning_rate_scheduler learning_rate_scheduler_type learning_rate_decay
        decay_lr""",
    "train.warmup_steps": """warmup warm_up warmup_updates warmup_iters warmup_ratio warmup_epochs num_warmup_steps
        lr_warmup_steps learning_rate_warmup learning_rate_warmup_steps""",
    "train.weight_decay": "wd l2 l2_penalty weight_decay_rate",
    "train.gradient_clip": """clip clipping clip_norm clip_grad clip_grad_norm clip_gradients clip_grad_val grad_clip
        grad_norm grad_clipping max_norm max_grad_norm gradient_clipping gradient_clip_val gradient_clipping_threshold""",
    "train.accumulate_steps": """accumulation accumulation_steps accum_count accum_grad accum_steps grad_accum
        grad_accumulation gradient_accumulation gradient_accumulation_steps accumulate_grad_batches update_freq
        update_interval batch_multiplier""",
    "train.label_smoothing": "smoothing label_smooth label_smoothing_factor label_smoothing_eps lsm_weight",
    "train.coverage_weight": "lambda_coverage coverage_loss_weight coverage_attn",
    "train.guided_alignment": "lambda_align alignment_loss_weight guided_alignment_weight",
    "train.scheduled_sampling": "sampling_probability sampling_prob teacher_forcing teacher_forcing_ratio sampling_type",
    "train.sequence_loss": "criterion loss loss_type seq_loss mrt minimum_risk",
    "train.init_from": """train_from load_model init_param init_params pretrained pretrained_model pretrained_file
        restore_file finetune_from_model model_name_or_path initialize_from checkpoint load_checkpoint""",
    "train.ema_decay": "ema average_decay moving_average_decay moving_average",
    "train.average_checkpoints": "average keep_nbest_models avg_checkpoints average_last num_average",
    "train.monitor": """metric eval_metric metric_for_best_model best_checkpoint_metric best_model_criterion
        optimized_metric early_stopping_metric early_stopping_criteria early_stop_metric val_scheduler_criterion
        monitor_metric""",
    "train.patience": """early_stop early_stopping early_stopping_patience max_num_checkpoint_not_improved
        num_checkpoint_patience stop_patience""",
    "train.evaluate_every": """eval_steps eval_every eval_interval eval_freq evaluation_steps valid_steps
        valid_interval valid_freq validate_interval validate_interval_updates validation_freq validation_interval
        val_check_interval eval_strategy evaluation_strategy""",
    "train.checkpoint_every": """save_steps save_every save_interval save_interval_updates save_freq
        save_checkpoint_steps save_checkpoints_steps checkpoint_interval checkpoint_freq checkpoint_steps save_strategy""",
    "train.keep_checkpoints": """save_total_limit keep_checkpoint keep_last keep_last_epochs keep_last_ckpts
        keep_best_ckpts keep_last_params keep_interval_updates save_top_k max_to_keep keep_checkpoint_max""",
    "train.log_every": """log_interval log_steps log_freq log_every_n_steps logging_steps logging_freq
        logging_interval report_every report_steps print_every display_freq""",
    "train.packing_length": "packing pack_length packed_length",
    "train.cuda_graphs": "cuda_graph use_cuda_graphs",
    "train.compile": "torch_compile use_compile jit",
    "train.tensorboard": "tensorboard_logdir tensorboard_log_dir use_tensorboard report_to tensorboard_dir logger",
    "dropout.embedding dropout.residual dropout.attention": """dropout drop dropout_rate dropout_prob p_dropout
        hidden_dropout hidden_dropout_prob resid_pdrop residual_dropout rnn_dropout enc_dropout dec_dropout
        encoder_dropout decoder_dropout""",
    "dropout.embedding": """emb_dropout embed_dropout embed_dropout_prob embd_pdrop embedding_dropout
        positional_dropout_rate""",
    "dropout.residual": """activation_dropout relu_dropout act_dropout ff_dropout transformer_dropout_prepost
        transformer_dropout_act""",
    "dropout.attention": """attention_dropout attn_dropout attn_pdrop attention_dropout_rate
        attention_probs_dropout_prob att_dropout self_attention_dropout_rate src_attention_dropout_rate
        transformer_dropout_attention""",
    "dropout.variational": "recurrent_dropout variational_dropout locked_dropout",
    "model.encoder": "arch architecture model_type encoder_type enc_type etype backbone model_name model",
    "model.decoder": "decoder_type dec_type arch architecture model_type model",
    "model.attention": """attn attention_type attn_type atype global_attention attn_mechanism attention_mechanism
        rnn_attention_type""",
    "model.hidden_size": """hidden hiddens hidden_dim hidden_units units d_model model_dim dmodel model_size dim
        emb_dim n_embd embed_dim encoder_embed_dim decoder_embed_dim rnn_size rnn_dim rnn_num_hidden enc_rnn_size
        dec_rnn_size enc_hid_size dec_hid_size encoder_hidden_size decoder_hidden_size eunits dunits adim output_size
        nhid n_hid n_hidden num_hidden num_units transformer_model_size hidden_channels""",
    "model.embedding_size": """embedding_dim embeddings_dim embed_size emb_size word_vec_size src_word_vec_size
        tgt_word_vec_size word_dim num_embed d_embed embedding_width""",
    "model.layers model.depth": """layers num_layers n_layer n_layers nlayers nb_layers layer_num num_hidden_layers
        rnn_num_layers enc_layers encoder_layers num_encoder_layers elayers num_blocks blocks depth""",
    "model.decoder_layers": "dec_layers num_decoder_layers dlayers",
    "model.cell": "rnn_type rnn cell_type rnn_cell rnn_cell_type rtype cell_name unit_type enc_cell dec_cell",
    "model.bidirectional": "brnn bidir birnn encoder_bidirectional bidirectional_encoder",
    "model.input_feeding": "input_feed decoder_input_feeding feed_context",
    "model.initial": "bridge init_hidden decoder_init",
    "model.reverse_source": "reverse_input reverse_src",
    "model.kernel_size": "cnn_kernel_width kernel_width conv_kernel_size cnn_kernel filter_width",
    "model.heads": """num_heads n_head n_heads nhead nheads head aheads attention_heads num_attention_heads
        encoder_attention_heads decoder_attention_heads transformer_attention_heads self_attention_heads""",
    "model.feedforward_size": """ff_size ffn_size ff_dim ffn_dim d_ff dff dim_ff feedforward feedforward_dim
        dim_feedforward transformer_ff intermediate_size inner_size linear_units encoder_ffn_dim decoder_ffn_dim
        ffn_embed_dim encoder_ffn_embed_dim decoder_ffn_embed_dim transformer_feed_forward_num_hidden filter_size
        mlp_dim n_inner""",
    "model.norm": """normalization layer_norm layernorm pre_norm prenorm norm_first normalize_before
        encoder_normalize_before decoder_normalize_before layer_norm_position rms_norm""",
    "model.activation": """activation_fn activation_function hidden_act act act_fn pos_ffn_activation_fn
        transformer_activation nonlinearity""",
    "model.gated": "glu is_gated_act gated_activation swiglu use_glu",
    "model.bias": "use_bias add_ffnbias add_qkvbias attention_bias",
    "model.scale_embedding": "no_scale_embedding scale_embeddings embedding_scale emb_scale",
    "model.embedding_norm": "layernorm_embedding layer_norm_embedding normalize_embedding",
    "model.positions": """position_encoding positional_encoding pos_encoding pos_enc position_embedding
        positional_embedding position_embedding_type positional_embedding_type position_encoding_type
        encoder_learned_pos decoder_learned_pos rope pos_enc_layer_type""",
    "model.self_attention": """max_relative_positions relative_position relative_positions selfattention_layer_type
        self_attn_type""",
    "model.tie_embeddings": """tied_embeddings tied_softmax tie_weights weight_tying weight_tying_type
        tie_word_embeddings share_embeddings share_all_embeddings share_decoder_embeddings
        share_decoder_input_output_embed""",
    "model.stride": "patch_size downsample output_stride",
    "model.map_size": "map_dim feature_dim feature_size",
    "model.queries": "num_queries n_queries object_queries",
    "data.train": """train_data train_file train_files train_path train_src train_set trainpref training_data data
        data_path dataset train""",
    "data.valid": """valid_data valid_file valid_path valid_src validpref validation_file validation_data validation
        valid_set dev dev_file dev_data dev_set val val_file val_data eval_file eval_data""",
    "data.test": "test_data test_file test_path test_src test_set testpref",
    "data.source": "src source_lang src_lang source_language source_column input_column",
    "data.target": "tgt trg target_lang tgt_lang trg_lang target_language target_column summary_column output_column",
    "data.tokenizer": """tokeniser tokenization tokenizer_type token_type tokenizer_name bpemode level bpe bpe_codes
        src_tokenizer subword subwords sentencepiece""",
    "data.vocab_size": """vocab voc_limit vocab_limit src_vocab_size tgt_vocab_size src_vocab trg_vocab nbpe
        num_words nwordssrc nwordstgt vocabulary_size max_vocab_size bpe_size num_merges num_symbols""",
    "data.min_frequency": """min_freq voc_min_freq vocab_min_freq min_count word_min_count src_words_min_frequency
        tgt_words_min_frequency thresholdsrc thresholdtgt vocab_threshold""",
    "data.joint_vocab": "joined_dictionary joint_vocabulary share_vocab shared_vocab joint_dictionary share_vocabulary",
    "data.lowercase": "lower lowercased do_lower_case lc",
    "data.max_source_length": """src_seq_length src_len max_src_len max_src_length max_source_positions
        max_seq_len_src max_seq_length max_input_length""",
    "data.max_target_length": """tgt_seq_length tgt_len max_tgt_len max_tgt_length max_trg_length
        max_target_positions max_seq_len_tgt""",
    "data.max_source_length data.max_target_length": "max_len max_sequence_length seq_len seq_length block_size",
    "data.batch_tokens": "max_tokens max_toks batch_size_tokens tokens_per_batch batch_bins batch_type batch_max_tokens",
    "data.batch_tokens data.batch_size": """batch_size batch batchsize bs bsz train_batch_size
        per_device_train_batch_size per_device_batch_size per_gpu_train_batch_size max_sentences micro_batch_size
        global_batch_size train_micro_batch_size""",
    "data.height data.width": "image_size img_size input_size resolution",
    "data.channels": "num_channels in_channels in_chans image_channel_size",
    "data.augment": "augmentation augmentations transforms data_augmentation",
    "data.alignments": "alignment alignment_file align_file load_alignments guided_alignment_file",
    "search.beam": "beam_size beam_width search num_beams n_beams generation_num_beams eval_beam beams nbeam beamsize",
    "search.max_length": """max_output_length max_new_tokens max_decode_length max_decode_len generation_max_length
        max_len_b max_gen_length maximum_length max_tgt_len max_len maxlen""",
    "search.max_length_ratio": "maxlenratio max_len_a max_ratio max_output_length_ratio max_input_length_ratio",
    "search.length_penalty": "lenpen len_pen beam_alpha length_penalty_alpha length_alpha lp_alpha penalty alpha",
    "search.coverage_penalty": "cov_pen coverage_beta stepwise_penalty beta",
    "search.batch_size": "eval_batch_size per_device_eval_batch_size valid_batch_size batch_size_valid test_batch_size",
    "search.unknown": "replace_unk replace_unknown unk_replace copy_unknown unkpen",
    "search.block_ngrams": "no_repeat_ngram_size block_ngram_repeat ngram_blocking repeat_ngram",
    "search.beam_groups": "num_beam_groups diverse_beam_groups diversity_groups",
    "search.diversity_penalty": "diverse_beam_strength diversity_strength diversity_rate beam_diversity",
    "search.mbr_candidates": "mbr_samples num_candidates",
    "search.forced_bos": "forced_bos_token forced_bos_token_id bos_token_id prefix_token target_prefix tgt_prefix",
}
"""Names of other toolkits, by the settings that they mean here: of several, those that the task has."""

ELSEWHERE = {
    "--out DIR names the run directory": """out out_dir output output_dir save_dir save_model model_dir model_path
        model_prefix exp_dir expdir logdir log_dir run_dir""",
    "the same command with the same --out resumes a training": """resume continue continue_training resume_from
        resume_from_checkpoint reset_optimizer overwrite overwrite_output_dir""",
    "a TOML file stands after the task: regard train TASK CONFIG.toml": """config config_file config_path conf cfg
        train_config""",
    "batches are prepared while the device computes, and there is nothing to choose": """
        num_workers workers n_workers dataloader_num_workers num_loaders prefetch prefetch_factor
        dataloader_prefetch_factor pin_memory dataloader_pin_memory bucket_size""",
    "batches are shuffled and grouped by length in every training": """shuffle group_by_length sort_in_batch
        sort_batch batch_by_length bucketing""",
    "a batch that does not fit the memory is cut by itself": """gradient_checkpointing checkpoint_activations
        max_generator_batches""",
}
"""Answers to names that no setting stands for."""

NOTES = {"data.batch_tokens": "which counts tokens", "train.precision": "which takes fp32 or bf16"}
NOTES |= {"train.warmup_steps": "which counts steps", "search.max_length_ratio": "which counts tokens per source token"}
"""Remarks on settings whose unit or values differ from those of other toolkits."""


def unknown_setting(path: str, paths: Iterable[str]) -> str:
    """Error text for a setting that is not among `paths`: the one that is meant, the nearest, or all of its group."""
    settings = [setting.removesuffix(".name") for setting in paths]
    prefix = path.rpartition(".")[0] + "." if "." in path else ""
    group = list(dict.fromkeys(setting[len(prefix) :].split(".")[0] for setting in settings if setting.startswith(prefix)))
    misspelt = difflib.get_close_matches(path[len(prefix) :], group, n=1, cutoff=0.85) if prefix else []
    meant = [prefix + name for name in misspelt] or meant_settings(path, settings)
    if not meant and (answer := _elsewhere(path)):
        return f"there is no setting {path}; {answer}"
    meant = meant or [setting for setting in settings if f"{setting}." == prefix] or _nearest(path, prefix, group, settings)
    if not meant or meant == [path]:
        return f"there is no setting {path}; there are {', '.join(group)}"
    note = next((f", {NOTES[setting]}" for setting in meant if setting in NOTES), "")
    return f"there is no setting {path}; did you mean {_joined(meant)}{note}?"


def foreign_option(name: str) -> str | None:
    """Error text for an option of another toolkit whose task is not known, such as a flag; None if no toolkit has it."""
    settings = [setting for names in FOREIGN for setting in names.split()]
    known = name in settings or not (_elsewhere(name) or meant_settings(name, settings))
    return None if known else unknown_setting(name, settings)


def meant_settings(path: str, settings: Sequence[str]) -> list[str]:
    """The settings that another toolkit calls by the last part of `path`, or that have this name in another group.

    Those in the group of `path` count alone, if there are any.
    """
    name, group = _name(path), path.partition(".")[0]
    called = {setting for keys, names in FOREIGN.items() if name in names.split() for setting in keys.split()}
    called |= {setting for setting in settings if called and setting == f"model.{name}"}  # one of this name, too
    meant = [setting for setting in settings if setting in called]
    meant = meant or [setting for setting in settings if setting.rpartition(".")[2] == name and "." in setting]
    return [setting for setting in meant if setting.startswith(f"{group}.")] or meant


def _elsewhere(path: str) -> str | None:
    """Answer to a name that no setting stands for; None if there is none."""
    return next((answer for answer, names in ELSEWHERE.items() if _name(path) in names.split()), None)


def _nearest(path: str, prefix: str, group: Sequence[str], settings: Sequence[str]) -> list[str]:
    """The nearest spelling in the group of a path, else, if it is very near, that in another group."""
    if near := difflib.get_close_matches(path[len(prefix) :], group, n=1):
        return [prefix + near[0]]
    by_name = {setting.rpartition(".")[2]: setting for setting in settings}
    return [by_name[name] for name in difflib.get_close_matches(path[len(prefix) :], by_name, n=1, cutoff=0.8)]


def _name(path: str) -> str:
    return path.rpartition(".")[2].lower().replace("-", "_")


def _joined(settings: Sequence[str]) -> str:
    """a; a or b; a, b or c."""
    return " or ".join(filter(None, [", ".join(settings[:-1]), settings[-1]]))
