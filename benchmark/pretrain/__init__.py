"""Joins the renderer and the objectives: trainings of mini backbones."""
