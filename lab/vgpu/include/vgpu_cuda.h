/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The CUDA driver interface (libcuda.so.1), written from its public
 * documentation. CU(MemAlloc_v2) stands for cuMemAlloc_v2; libamdhip64, which has
 * no separate driver, compiles the same calls with hidden names.
 */
#include <stddef.h>

#include "vgpu/include/vgpu.h"

#ifndef CU
#define CU(name) cu##name
#endif

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
	CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
	CUDA_ERROR_CAPTURED_EVENT = 907,
	CUDA_ERROR_UNKNOWN = 999,
} CUresult;

enum {
	CU_CTX_SCHED_AUTO = 0,
	CU_CTX_SCHED_SPIN = 1,
	CU_CTX_SCHED_YIELD = 2,
	CU_CTX_SCHED_BLOCKING_SYNC = 4,
	CU_CTX_SCHED_MASK = 7,
	CU_STREAM_NON_BLOCKING = 1,
	CU_EVENT_BLOCKING_SYNC = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_EVENT_RECORD_EXTERNAL = 1,
	CU_EVENT_WAIT_EXTERNAL = 1,
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_ARRAY = 3,
	CU_MEMORYTYPE_UNIFIED = 4,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
	CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
	CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
};

/* The handles of the default streams. */
#define CU_STREAM_LEGACY     ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

typedef enum {
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
} CUstreamCaptureStatus;

typedef enum {
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
} CUdriverProcAddressQueryResult;

typedef void (*CUhostFn)(void *data);

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	size_t srcXInBytes;
	size_t srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch;
	size_t dstXInBytes;
	size_t dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;

typedef struct {
	int type; /* CU_MEM_LOCATION_TYPE_DEVICE */
	int id;
} CUmemLocation;

typedef struct {
	int type; /* CU_MEM_ALLOCATION_TYPE_PINNED */
	int requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

typedef struct {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

CUresult CU(Init)(unsigned int flags);
CUresult CU(DriverGetVersion)(int *version);
CUresult CU(GetErrorString)(CUresult error, const char **ret);
CUresult CU(GetErrorName)(CUresult error, const char **ret);

CUresult CU(DeviceGet)(CUdevice *device, int ordinal);
CUresult CU(DeviceGetCount)(int *count);
CUresult CU(DeviceGetName)(char *name, int length, CUdevice device);
CUresult CU(DeviceTotalMem_v2)(size_t *bytes, CUdevice device);
CUresult CU(DeviceGetAttribute)(int *value, int attribute, CUdevice device);
CUresult CU(DeviceGetPCIBusId)(char *id, int length, CUdevice device);

CUresult CU(DeviceGetUuid)(CUuuid *uuid, CUdevice device);
CUresult CU(DeviceGetUuid_v2)(CUuuid *uuid, CUdevice device);
CUresult CU(DeviceGetDefaultMemPool)(CUmemoryPool *pool, CUdevice device);

CUresult CU(CtxCreate_v2)(CUcontext *ctx, unsigned int flags, CUdevice device);
CUresult CU(CtxDestroy_v2)(CUcontext ctx);
CUresult CU(CtxSetCurrent)(CUcontext ctx);
CUresult CU(CtxGetCurrent)(CUcontext *ctx);
CUresult CU(CtxGetDevice)(CUdevice *device);
CUresult CU(CtxGetFlags)(unsigned int *flags);
CUresult CU(CtxPushCurrent_v2)(CUcontext ctx);
CUresult CU(CtxPopCurrent_v2)(CUcontext *ctx);
CUresult CU(CtxSynchronize)(void);
CUresult CU(DevicePrimaryCtxRetain)(CUcontext *ctx, CUdevice device);
CUresult CU(DevicePrimaryCtxRelease_v2)(CUdevice device);
CUresult CU(DevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned int flags);
CUresult CU(DevicePrimaryCtxGetState)(CUdevice device, unsigned int *flags, int *active);
CUresult CU(DevicePrimaryCtxReset_v2)(CUdevice device);

CUresult CU(ModuleLoadData)(CUmodule *module, const void *image);
CUresult CU(ModuleGetFunction)(CUfunction *function, CUmodule module, const char *name);
CUresult CU(ModuleUnload)(CUmodule module);
CUresult CU(LibraryLoadData)(CUlibrary *library, const void *code, void *jit_options,
			     void **jit_values, unsigned int nr_jit, void *options, void **values,
			     unsigned int nr);
CUresult CU(LibraryGetKernel)(CUkernel *kernel, CUlibrary library, const char *name);
CUresult CU(KernelGetFunction)(CUfunction *function, CUkernel kernel);
CUresult CU(LibraryUnload)(CUlibrary library);
CUresult CU(LaunchKernel)(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int shared, CUstream stream, void **params,
			  void **extra);
CUresult CU(LaunchKernelEx)(const CUlaunchConfig *config, CUfunction function, void **params,
			    void **extra);
CUresult CU(LaunchCooperativeKernel)(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				     unsigned int grid_z, unsigned int block_x,
				     unsigned int block_y, unsigned int block_z,
				     unsigned int shared, CUstream stream, void **params);
CUresult CU(LaunchHostFunc)(CUstream stream, CUhostFn function, void *data);

CUresult CU(StreamCreate)(CUstream *stream, unsigned int flags);
CUresult CU(StreamDestroy_v2)(CUstream stream);
CUresult CU(StreamSynchronize)(CUstream stream);
CUresult CU(StreamQuery)(CUstream stream);
CUresult CU(StreamWaitEvent)(CUstream stream, CUevent event, unsigned int flags);
CUresult CU(StreamBeginCapture_v2)(CUstream stream, int mode);
CUresult CU(StreamEndCapture)(CUstream stream, CUgraph *graph);
CUresult CU(StreamIsCapturing)(CUstream stream, CUstreamCaptureStatus *status);
CUresult CU(GraphInstantiateWithFlags)(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult CU(GraphLaunch)(CUgraphExec exec, CUstream stream);
CUresult CU(GraphExecDestroy)(CUgraphExec exec);
CUresult CU(GraphDestroy)(CUgraph graph);

CUresult CU(EventCreate)(CUevent *event, unsigned int flags);
CUresult CU(EventRecord)(CUevent event, CUstream stream);
CUresult CU(EventRecordWithFlags)(CUevent event, CUstream stream, unsigned int flags);
CUresult CU(EventQuery)(CUevent event);
CUresult CU(EventSynchronize)(CUevent event);
CUresult CU(EventElapsedTime)(float *ms, CUevent start, CUevent end);
CUresult CU(EventDestroy_v2)(CUevent event);

CUresult CU(MemAlloc_v2)(CUdeviceptr *ptr, size_t size);
CUresult CU(MemAllocPitch_v2)(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
			      unsigned int element_bytes);
CUresult CU(MemAllocManaged)(CUdeviceptr *ptr, size_t size, unsigned int flags);
CUresult CU(MemAllocHost_v2)(void **ptr, size_t size);
CUresult CU(MemHostAlloc)(void **ptr, size_t size, unsigned int flags);
CUresult CU(MemFree_v2)(CUdeviceptr ptr);
CUresult CU(MemFreeHost)(void *ptr);
CUresult CU(MemAllocAsync)(CUdeviceptr *ptr, size_t size, CUstream stream);
CUresult CU(MemAllocFromPoolAsync)(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
				   CUstream stream);
CUresult CU(MemFreeAsync)(CUdeviceptr ptr, CUstream stream);
CUresult CU(MemHostRegister_v2)(void *ptr, size_t size, unsigned int flags);
CUresult CU(MemHostUnregister)(void *ptr);
CUresult CU(MemGetInfo_v2)(size_t *free, size_t *total);

CUresult CU(Memcpy)(CUdeviceptr dst, CUdeviceptr src, size_t count);
CUresult CU(MemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream);
CUresult CU(MemcpyHtoD_v2)(CUdeviceptr dst, const void *src, size_t count);
CUresult CU(MemcpyDtoH_v2)(void *dst, CUdeviceptr src, size_t count);
CUresult CU(MemcpyDtoD_v2)(CUdeviceptr dst, CUdeviceptr src, size_t count);
CUresult CU(MemcpyHtoDAsync_v2)(CUdeviceptr dst, const void *src, size_t count, CUstream stream);
CUresult CU(MemcpyDtoHAsync_v2)(void *dst, CUdeviceptr src, size_t count, CUstream stream);
CUresult CU(MemcpyDtoDAsync_v2)(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream);
CUresult CU(Memcpy2DAsync_v2)(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult CU(MemsetD8_v2)(CUdeviceptr ptr, unsigned char value, size_t count);
CUresult CU(MemsetD8Async)(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream);

CUresult CU(MemAddressReserve)(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			       unsigned long long flags);
CUresult CU(MemAddressFree)(CUdeviceptr ptr, size_t size);
CUresult CU(MemCreate)(CUmemGenericAllocationHandle *handle, size_t size,
		       const CUmemAllocationProp *prop, unsigned long long flags);
CUresult CU(MemRelease)(CUmemGenericAllocationHandle handle);
CUresult CU(MemMap)(CUdeviceptr ptr, size_t size, size_t offset,
		    CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult CU(MemUnmap)(CUdeviceptr ptr, size_t size);
CUresult CU(MemSetAccess)(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count);
CUresult CU(MemGetAllocationGranularity)(size_t *granularity, const CUmemAllocationProp *prop,
					 int option);

#ifndef VGPU_HIP
CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, unsigned long long flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, unsigned long long flags,
			     CUdriverProcAddressQueryResult *status);

/* The same calls, with the default stream of the calling thread. */
__typeof__(cuLaunchKernel) cuLaunchKernel_ptsz;
__typeof__(cuLaunchKernelEx) cuLaunchKernelEx_ptsz;
__typeof__(cuLaunchCooperativeKernel) cuLaunchCooperativeKernel_ptsz;
__typeof__(cuLaunchHostFunc) cuLaunchHostFunc_ptsz;
__typeof__(cuStreamSynchronize) cuStreamSynchronize_ptsz;
__typeof__(cuStreamQuery) cuStreamQuery_ptsz;
__typeof__(cuStreamWaitEvent) cuStreamWaitEvent_ptsz;
__typeof__(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz;
__typeof__(cuStreamEndCapture) cuStreamEndCapture_ptsz;
__typeof__(cuStreamIsCapturing) cuStreamIsCapturing_ptsz;
__typeof__(cuGraphLaunch) cuGraphLaunch_ptsz;
__typeof__(cuEventRecord) cuEventRecord_ptsz;
__typeof__(cuEventRecordWithFlags) cuEventRecordWithFlags_ptsz;
__typeof__(cuMemAllocAsync) cuMemAllocAsync_ptsz;
__typeof__(cuMemAllocFromPoolAsync) cuMemAllocFromPoolAsync_ptsz;
__typeof__(cuMemFreeAsync) cuMemFreeAsync_ptsz;
__typeof__(cuMemcpyAsync) cuMemcpyAsync_ptsz;
__typeof__(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
__typeof__(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
__typeof__(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
__typeof__(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
__typeof__(cuMemsetD8Async) cuMemsetD8Async_ptsz;
__typeof__(cuMemcpy) cuMemcpy_ptds;
__typeof__(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
__typeof__(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
__typeof__(cuMemcpyDtoD_v2) cuMemcpyDtoD_v2_ptds;
__typeof__(cuMemsetD8_v2) cuMemsetD8_v2_ptds;
#endif
