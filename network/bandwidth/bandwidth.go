// Package bandwidth keeps the bandwidth limits of a node's pods in sync with the pods' annotations.
//
// The CNI plugin sets the limits of a new pod before the pod sends a packet. The component in this
// package applies later changes to the annotations, and restores limits that another program
// removed. If the component stops, the limits remain in effect.
package bandwidth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/podbandwidth"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/shaping"
)

// Limiter is the component that limits the bandwidth of a node's pods.
type Limiter struct {
	NodeName string
	Client   kubernetes.Interface // can list and watch pods
	Bridge   string               // bridge for pods
	LeaseDir string               // directory of the CNI plugin's leases
	// DualStack contains the networks of all pods.
	DualStack dualstack.Networks
}

const (
	// checkInterval is the interval at which Limiter checks the limits of all devices.
	checkInterval = 30 * time.Second
	// retryBackoff is the delay before a retry after a failure.
	retryBackoff = time.Second
)

// Name returns the component's name.
func (*Limiter) Name() string { return "bandwidth" }

// Run applies changes until ctx is done.
func (l *Limiter) Run(ctx context.Context, ready func()) error {
	informer := coreinformers.NewFilteredPodInformer(l.Client, metav1.NamespaceAll, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", l.NodeName).String()
	})
	changes, err := watch(informer)
	if err != nil {
		return fmt.Errorf("bandwidth: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() { cancel(); <-done }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	ready()
	for {
		delay := checkInterval
		if err := l.reconcile(informer.GetStore()); err != nil {
			slog.ErrorContext(ctx, "cannot limit bandwidth of pods", "component", l.Name(), "retryAfter", retryBackoff, "error", err)
			delay = retryBackoff
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-time.After(delay):
		}
	}
}

// watch returns a channel that receives a value after a change to a pod that has, or had, limits.
func watch(informer cache.SharedIndexInformer) (<-chan struct{}, error) {
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	changes := make(chan struct{}, 1)
	handle := func(objects ...any) {
		for _, object := range objects {
			if pod, ok := object.(*corev1.Pod); ok && len(pod.Annotations) > 0 {
				select {
				case changes <- struct{}{}:
				default: // a value is already pending
				}
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { handle(object) }, UpdateFunc: func(old, object any) { handle(old, object) },
	})
	return changes, err
}

// trim removes fields that the component does not use.
func trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}}
	for _, name := range []string{podbandwidth.Ingress, podbandwidth.Egress} {
		if value, ok := pod.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, name, value)
		}
	}
	return trimmed, nil
}

// reconcile applies the limits of all pods that have an address.
func (l *Limiter) reconcile(pods cache.Store) error {
	attached, err := cni.ListPods(l.LeaseDir)
	if err != nil || len(attached) == 0 {
		return err
	}
	bridge, err := netlinksafe.LinkByName(l.Bridge)
	if err != nil {
		return fmt.Errorf("find bridge %q: %w", l.Bridge, err)
	}
	var errs []error
	devices := cni.ListDevices()
	for _, attachment := range attached {
		object, exists, err := pods.GetByKey(attachment.Namespace + "/" + attachment.Name)
		pod, isPod := object.(*corev1.Pod)
		if err != nil || !exists || !isPod || string(pod.UID) != attachment.UID || !devices.Have(attachment) {
			continue // the pod is starting or terminating
		}
		err = apply(pod, shaping.Pod{
			Device: attachment.Device, Address: attachment.Address, SecondAddress: l.second(attachment),
			MAC: cni.HardwareAddress(attachment.Address), GatewayMAC: bridge.Attrs().HardwareAddr,
		})
		if err != nil && attachment.HasDevice() {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(errs...)
}

// second returns a pod's IPv6 address. If the pod was created while another IPv6 network was
// configured, second returns an invalid address, because spoofcheck rejects packets from the old
// address. A filter for the old address would let packets bypass spoofcheck.
func (l *Limiter) second(pod cni.Pod) netip.Addr {
	if !l.DualStack.Subnet(l.DualStack.SubnetOf(pod.Address)).Contains(pod.SecondAddress) {
		return netip.Addr{}
	}
	return pod.SecondAddress
}

// bitsPerByte is used to round limits down to whole bytes, because the kernel's limits are in
// bytes.
const bitsPerByte = 8

func apply(pod *corev1.Pod, attachment shaping.Pod) error {
	ingress, egress, err := podbandwidth.Parse(pod.Annotations)
	if err != nil {
		return err
	}
	desired := shaping.Limits{Ingress: ingress - ingress%bitsPerByte, Egress: egress - egress%bitsPerByte}
	current, err := shaping.Read(attachment.Device)
	if err != nil || current == desired && desired.Egress == 0 {
		return err
	}
	return shaping.Apply(attachment, desired) // also restores missing filters
}
