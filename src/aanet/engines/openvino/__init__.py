"""OpenVINO, the default engine on a CPU: conversion of networks, its cache, and the choice of precision."""
