from typing import final

@final
class Spares: ...

@final
class IdBlock: ...
