/* Compile ST_KERNEL, the path of a header, once for each vector tier of this build.

   Such a header has two parts. The first is read once: types, the plain version, which defines the
   result, the #include of this file, and the choice of a version (ST_BEST). The second part, after `#else`
   of `#ifndef ST_TIER`, is read for each tier: ST_OWN(name) is then name_sse4, name_avx2 and so on, and
   the names of vector/names.h are the tier's. No include guard: each kernel includes this file. */

#include "base/native.h"

#if defined(ST_X86)
#include "vector/names.h"

#define ST_TIER sse4
#define LANES 16
ST_TARGET_BEGIN(ST_FEATURES_SSE4)
#ifndef ST_HAS_BACK_ENDS
#include "vector/sse4_avx2.h"
#endif
#include ST_KERNEL
ST_TARGET_END
#undef ST_TIER
#undef LANES

#define ST_TIER avx2
#define LANES 32
ST_TARGET_BEGIN(ST_FEATURES_AVX2)
#ifndef ST_HAS_BACK_ENDS
#include "vector/sse4_avx2.h"
#endif
#include ST_KERNEL
ST_TARGET_END
#undef ST_TIER
#undef LANES

#define ST_TIER avx512
#define LANES 64
ST_TARGET_BEGIN(ST_FEATURES_VBMI2)
#ifndef ST_HAS_BACK_ENDS
#include "vector/avx512.h"
#endif
#include ST_KERNEL
ST_TARGET_END
#undef ST_TIER
#undef LANES

#define ST_HAS_BACK_ENDS
#include "vector/no_names.h"

#elif defined(ST_NEON)
#include "vector/names.h"

#define ST_TIER neon
#define LANES 16
#ifndef ST_HAS_BACK_ENDS
#include "vector/neon.h"
#endif
#include ST_KERNEL
#undef ST_TIER
#undef LANES

#define ST_HAS_BACK_ENDS
#include "vector/no_names.h"
#endif

#undef ST_KERNEL
