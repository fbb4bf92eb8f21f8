"""Modality of time series: values of one or several series at times of one frequency."""
