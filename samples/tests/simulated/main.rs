//! The trainers on the simulated device, end to end: from arguments through cudarc and the simulated libcuda to the host
//! references and back.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | checkpoint | blocks computed again: the same gradients, fewer bytes |
//! | chunked_loss | the loss in chunks of rows |
//! | compress_activations | what layers keep, in 8 bits |
//! | device | how a test gets a simulated libcuda |
//! | flash_attention | attention without its matrix |
//! | gradients | backward against finite differences |
//! | lifetimes | gradients that are accumulated, kept or freed early: the same losses |
//! | measured | one pass, measured |
//! | optimizers | each optimizer: losses that fall, states, updates against f64 |
//! | placement | memory that is elsewhere, or less: offloading, a fraction of the device, the largest batch |
//! | precision | 16 bits: losses, gradients against fp32, the loss scale |
//! | precision_bytes | 16 bits: what each category takes, against arithmetic by hand |
//! | ranks | several ranks: the losses of one, and what each keeps |
//! | ranks_precision | several ranks in 16 bits: the losses of one, what each keeps, one verdict on the loss scale |
//! | ranks_with | several ranks with the other techniques: the losses of one, and what each keeps |
//! | reference | the forward pass against an independent one in f64 |
//! | sharing | weights that are shared, or frozen beside adapters |
//! | training | losses that fall and repeat, memory, errors |
//! | workload | the caching allocator, and steps of varying length |
//! | resnet_reference | ResNets against an independent one in f64, and backward against differences of its loss |
//! | resnet_checkpoint, resnet_precision, resnet_techniques | the same techniques, of ResNets |
//! | resnet_training | what training is for GPTs, of ResNets |

mod checkpoint;
mod chunked_loss;
mod compress_activations;
mod device;
mod flash_attention;
mod gradients;
mod lifetimes;
mod measured;
mod optimizers;
mod placement;
mod precision;
mod precision_bytes;
mod ranks;
mod ranks_precision;
mod ranks_with;
mod reference;
mod resnet_checkpoint;
mod resnet_precision;
mod resnet_reference;
mod resnet_techniques;
mod resnet_training;
mod sharing;
mod training;
mod workload;
