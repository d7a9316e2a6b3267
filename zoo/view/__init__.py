"""Views: how an image is resized, cropped and cut before a backbone sees it."""
