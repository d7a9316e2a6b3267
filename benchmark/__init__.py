"""The command line, the plan and the passes: wires everything."""
