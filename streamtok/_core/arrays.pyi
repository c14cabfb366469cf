from typing import final

@final
class ArrayView: ...
