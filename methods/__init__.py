"""The methods that come with the harness: one file each, registered by entry point as any third
party's would be.
"""

if (
    __name__ == "methods"
):  # from a clone, whose folder is on the path: each module would be there twice
    raise ImportError("the methods of bench are imported from bench.methods", name=__name__)
