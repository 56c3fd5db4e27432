// Tells torch that this machine has one GPU, of which every stream is idle: with this a build of torch without CUDA runs
// autograd, autocast and random draws of tensors that claim to be on cuda:0. card.py computes them, on the CPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

using c10::DeviceType;

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return card(); }
  c10::Device getDevice() const override { return card(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

 private:
  static c10::Device card() noexcept { return {DeviceType::CUDA, 0}; }
  static c10::Stream stream() noexcept { return c10::Stream(c10::Stream::DEFAULT, card()); }
};

c10::impl::DeviceGuardImplRegistrar registered(DeviceType::CUDA, new Guard());

}  // namespace

namespace at {

struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  const Generator& getDefaultGenerator(DeviceIndex) const override { return detail::getDefaultCPUGenerator(); }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
