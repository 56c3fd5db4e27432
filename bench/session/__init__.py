"""A session: the runs of one command or one call of ``import bench``, from options to records.

The command line and the functions of :mod:`bench.library` both begin a
:class:`bench.session.session.Session`, and do not know each other.
"""
