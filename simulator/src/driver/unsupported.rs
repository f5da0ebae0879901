//! Functions that exist and are not simulated: that is said, and CUDA_ERROR_NOT_SUPPORTED, once CUDA is
//! initialised.
//!
//! Owns: their names, so that a program that looks them up hears an error rather than nothing. Arguments are not read;
//! in the C calling convention a callee may ignore them. The version is the one that brought the function where it is
//! known, else 10000.

use crate::error::CUresult;
use crate::process::process;

macro_rules! unsupported {
    ($($version:literal: $($name:ident)*;)*) => {
        exports! {
            $($($version fn $name() { process()?; Err(CUresult::NOT_SIMULATED) })*)*
        }
    };
}

unsupported! {
    10000:
        cuArrayGetPlane cuArrayGetSparseProperties cuCtxAttach cuCtxDetach cuCtxGetExecAffinity
        cuDestroyExternalSemaphore
        cuExternalMemoryGetMappedMipmappedArray cuFuncSetBlockShape cuFuncSetSharedSize cuGraphAddChildGraphNode
        cuGraphAddDependencies cuGraphAddEventRecordNode cuGraphAddEventWaitNode
        cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode cuGraphAddHostNode
        cuGraphAddKernelNode cuGraphAddMemcpyNode cuGraphAddMemsetNode
        cuGraphChildGraphNodeGetGraph cuGraphClone cuGraphDebugDotPrint
        cuGraphDestroyNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent
        cuGraphEventWaitNodeSetEvent cuGraphExecChildGraphNodeSetParams
        cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
        cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams
        cuGraphExecHostNodeSetParams cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
        cuGraphExecMemsetNodeSetParams cuGraphExecUpdate cuGraphExternalSemaphoresSignalNodeGetParams
        cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeGetParams
        cuGraphExternalSemaphoresWaitNodeSetParams cuGraphGetEdges cuGraphGetNodes cuGraphGetRootNodes
        cuGraphHostNodeGetParams cuGraphHostNodeSetParams
        cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams
        cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams cuGraphMemAllocNodeGetParams
        cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphMemsetNodeGetParams
        cuGraphMemsetNodeSetParams cuGraphNodeFindInClone cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes
        cuGraphNodeGetType cuGraphReleaseUserObject cuGraphRemoveDependencies cuGraphRetainUserObject
        cuGraphicsMapResources cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer_v2
        cuGraphicsResourceSetMapFlags_v2 cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources
        cuGraphicsUnregisterResource cuImportExternalSemaphore cuLaunch cuLaunchGrid
        cuLaunchGridAsync cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkCreate_v2 cuLinkDestroy
        cuMemMapArrayAsync
        cuMipmappedArrayGetSparseProperties cuModuleGetSurfRef cuModuleGetTexRef cuParamSetSize cuParamSetTexRef
        cuParamSetf cuParamSeti cuParamSetv cuSignalExternalSemaphoresAsync cuStreamBatchMemOp cuStreamGetAttribute
        cuStreamSetAttribute cuStreamUpdateCaptureDependencies cuStreamWaitValue32 cuStreamWaitValue64
        cuStreamWriteValue32 cuStreamWriteValue64 cuSurfObjectCreate cuSurfObjectDestroy cuSurfObjectGetResourceDesc
        cuSurfRefGetArray cuSurfRefSetArray cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc
        cuTexObjectGetResourceViewDesc cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy cuTexRefGetAddressMode
        cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor cuTexRefGetFilterMode cuTexRefGetFlags
        cuTexRefGetFormat cuTexRefGetMaxAnisotropy cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
        cuTexRefGetMipmapLevelClamp cuTexRefGetMipmappedArray cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode
        cuTexRefSetAddress_v2 cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags
        cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
        cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuUserObjectCreate cuUserObjectRelease
        cuUserObjectRetain cuWaitExternalSemaphoresAsync;
    11060:
        cuGraphNodeGetEnabled cuGraphNodeSetEnabled cuMipmappedArrayGetMemoryRequirements;
    11070:
        cuGraphAddBatchMemOpNode cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
        cuGraphExecBatchMemOpNodeSetParams cuMemGetHandleForAddressRange cuStreamBatchMemOp_v2 cuStreamWaitValue32_v2
        cuStreamWaitValue64_v2 cuStreamWriteValue32_v2 cuStreamWriteValue64_v2;
    11080:
        cuOccupancyMaxActiveClusters;
    12000:
        cuGraphAddKernelNode_v2 cuGraphExecGetFlags cuGraphExecKernelNodeSetParams_v2 cuGraphExecUpdate_v2
        cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetParams_v2
        cuLibraryGetUnifiedFunction cuTensorMapEncodeIm2col cuTensorMapEncodeTiled cuTensorMapReplaceAddress;
    12010:
        cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal;
    12020:
        cuGraphAddNode cuGraphExecNodeSetParams cuGraphNodeSetParams;
    12030:
        cuGraphAddDependencies_v2 cuGraphAddNode_v2 cuGraphConditionalHandleCreate cuGraphGetEdges_v2
        cuGraphNodeGetDependencies_v2 cuGraphNodeGetDependentNodes_v2 cuGraphRemoveDependencies_v2
        cuStreamUpdateCaptureDependencies_v2;
    12040:
        cuCtxFromGreenCtx cuCtxGetDevResource cuDevResourceGenerateDesc cuDevSmResourceSplitByCount
        cuDeviceGetDevResource cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification cuGreenCtxCreate
        cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxRecordEvent cuGreenCtxWaitEvent cuStreamGetGreenCtx;
    12050:
        cuGreenCtxStreamCreate;
    12080:
        cuMemBatchDecompressAsync cuMemcpy3DBatchAsync cuMemcpyBatchAsync cuTensorMapEncodeIm2colWide;
    12090:
        cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory;
    13000:
        cuDeviceGetHostAtomicCapabilities cuDeviceGetP2PAtomicCapabilities cuGreenCtxGetId
        cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync cuMemPrefetchBatchAsync cuMemcpy3DBatchAsync_v2
        cuMemcpyBatchAsync_v2;
}
