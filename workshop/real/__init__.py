"""Really trained networks that can be had without a hub: fetched, converted, tried, and measured."""
