"""Recording: ``trnscope run`` for a script as it is, ``trnscope.profile`` for a part of one.

Only the modules that run inside the recorded program (``hooks``, ``recorder``, ``session``,
``profile``) touch torch, and they do so after that program has imported it or asked for it.
"""
