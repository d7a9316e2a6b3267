"""Training of mini backbones: joins the renderer and the objectives."""
