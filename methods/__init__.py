"""The methods that come with the harness: one file each, registered by entry point as any third party's would be."""
