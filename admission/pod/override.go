package pod

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// overrideAnnotation is the project annotation that disables the override if its value is "false".
const overrideAnnotation = "quota.openshift.io/cluster-resource-override-enabled"

// overrideConfig is the configuration of ClusterResourceOverride. All values are percentages; 0
// disables an override.
type overrideConfig struct {
	metav1.TypeMeta `json:",inline"`
	// LimitCPUToMemoryPercent derives the CPU limit from the memory limit: 100 means one core per 1
	// GiB.
	LimitCPUToMemoryPercent int64 `json:"limitCPUToMemoryPercent"`
	// CPURequestToLimitPercent derives the CPU request from the CPU limit.
	CPURequestToLimitPercent int64 `json:"cpuRequestToLimitPercent"`
	// MemoryRequestToLimitPercent derives the memory request from the memory limit.
	MemoryRequestToLimitPercent int64 `json:"memoryRequestToLimitPercent"`
}

// override is the ClusterResourceOverride plugin. It sets container requests to configured
// percentages of their limits.
type override struct {
	*admission.Handler
	config     overrideConfig
	namespaces corelisters.NamespaceLister
}

var _ admission.MutationInterface = &override{}

func newOverride(reader io.Reader) (*override, error) {
	o := &override{Handler: admission.NewHandler(admission.Create)}
	if err := apiserver.DecodeConfig(reader, "ClusterResourceOverrideConfig", &o.config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", ClusterResourceOverride, err)
	}
	var errs []error
	for name, percent := range map[string]int64{
		"cpuRequestToLimitPercent": o.config.CPURequestToLimitPercent, "memoryRequestToLimitPercent": o.config.MemoryRequestToLimitPercent,
	} {
		if percent < 0 || percent > 100 {
			errs = append(errs, fmt.Errorf("%s is %d, must be between 0 and 100", name, percent))
		}
	}
	if o.config.LimitCPUToMemoryPercent < 0 {
		errs = append(errs, fmt.Errorf("limitCPUToMemoryPercent is %d, must not be negative", o.config.LimitCPUToMemoryPercent))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", ClusterResourceOverride, err)
	}
	return o, nil
}

// SetExternalKubeInformerFactory stores the namespace lister.
func (o *override) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	o.namespaces = factory.Core().V1().Namespaces().Lister()
	o.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization returns an error if there is no lister.
func (o *override) ValidateInitialization() error {
	if o.namespaces == nil {
		return fmt.Errorf("initialize %s: no namespace lister", ClusterResourceOverride)
	}
	return nil
}

// Admit sets requests and CPU limits.
func (o *override) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	if !o.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the namespace cache is not ready; try again"))
	}
	namespace, err := o.namespaces.Get(a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("find project: %w", err))
	}
	if namespace.Annotations[overrideAnnotation] == "false" {
		return nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			o.set(&list[i].Resources)
		}
	}
	return nil
}

func (o *override) set(r *corev1.ResourceRequirements) {
	request := func(name corev1.ResourceName, quantity *resource.Quantity) {
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = *quantity
	}
	if memory, ok := r.Limits[corev1.ResourceMemory]; ok {
		if percent := o.config.MemoryRequestToLimitPercent; percent > 0 {
			const minBytes = 1 << 20
			request(corev1.ResourceMemory, resource.NewQuantity(max(memory.Value()*percent/100, minBytes), memory.Format))
		}
		if percent := o.config.LimitCPUToMemoryPercent; percent > 0 {
			const gibibyte = 1 << 30
			milli := float64(memory.Value()) / gibibyte * 1000 * float64(percent) / 100
			r.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(max(int64(milli), 1), resource.DecimalSI)
		}
	}
	if cpu, ok := r.Limits[corev1.ResourceCPU]; ok && o.config.CPURequestToLimitPercent > 0 {
		milli := cpu.MilliValue() * o.config.CPURequestToLimitPercent / 100
		request(corev1.ResourceCPU, resource.NewMilliQuantity(max(milli, 1), resource.DecimalSI))
	}
}
