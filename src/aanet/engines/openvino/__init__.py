"""OpenVINO, the default engine on a CPU: conversion, its cache, and the choice of precision."""
