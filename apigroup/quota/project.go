package quota

import (
	"context"
	"fmt"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// streamsName is the quota resource name for the number of image streams. Kubernetes enforces the
// ResourceQuotas of projects, but does not support this name and leaves its usage unchanged.
const streamsName corev1.ResourceName = "openshift.io/imagestreams"

// projectQuotas provides access to the ResourceQuotas that limit image streams.
type projectQuotas struct {
	client kubernetes.Interface
	quotas corelisters.ResourceQuotaLister
}

// limiting returns the image stream quotas of a namespace, or of all namespaces for
// metav1.NamespaceAll, from the API server's cache.
func (p *projectQuotas) limiting(namespace string) ([]*corev1.ResourceQuota, error) {
	all, err := p.quotas.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list quotas of project %q: %w", namespace, err)
	}
	var limiting []*corev1.ResourceQuota
	for _, quota := range all {
		if _, ok := quota.Spec.Hard[streamsName]; ok {
			limiting = append(limiting, quota)
		}
	}
	return limiting, nil
}

// GetQuotas returns a namespace's quotas, reduced to the limit on image streams.
func (p *projectQuotas) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	cached, err := p.limiting(namespace)
	if err != nil {
		return nil, err
	}
	var quotas []corev1.ResourceQuota
	for _, quota := range cached {
		current, err := p.client.CoreV1().ResourceQuotas(namespace).Get(context.Background(), quota.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read quota %q: %w", quota.Name, err)
		}
		limit := corev1.ResourceList{streamsName: current.Spec.Hard[streamsName]}
		current.Spec.Hard, current.Status.Hard = limit, limit
		quotas = append(quotas, *current)
	}
	return quotas, nil
}

// UpdateQuotaStatus writes the number of image streams. It returns an error if the quota has
// changed since it was read.
func (p *projectQuotas) UpdateQuotaStatus(quota *corev1.ResourceQuota) error {
	return p.write(context.Background(), quota, quota.Status.Used[streamsName])
}

func (p *projectQuotas) write(ctx context.Context, read *corev1.ResourceQuota, streams apiresource.Quantity) error {
	quotas := p.client.CoreV1().ResourceQuotas(read.Namespace)
	current, err := quotas.Get(ctx, read.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	current.ResourceVersion = read.ResourceVersion
	if current.Status.Hard == nil {
		current.Status.Hard = corev1.ResourceList{}
	}
	if current.Status.Used == nil {
		current.Status.Used = corev1.ResourceList{}
	}
	current.Status.Hard[streamsName], current.Status.Used[streamsName] = current.Spec.Hard[streamsName], streams
	_, err = quotas.UpdateStatus(ctx, current, metav1.UpdateOptions{})
	return err
}

// keyOf returns the key under which reservations stores a project's quota.
func keyOf(quota *corev1.ResourceQuota) string { return quota.Namespace + "/" + quota.Name }

// countProjects counts the image streams in projects that have a quota for image streams.
func (c *counter) countProjects(ctx context.Context, now time.Time) error {
	quotas, err := c.projects.limiting(metav1.NamespaceAll)
	if err != nil {
		return err
	}
	for _, quota := range quotas {
		quantity, ok := quota.Status.Used[streamsName]
		hard := quota.Status.Hard[streamsName]
		if !c.due(keyOf(quota), ok && hard.Equal(quota.Spec.Hard[streamsName]), now) {
			continue
		}
		reserved := c.inFlight.reserved(keyOf(quota))[quota.Namespace]
		streams, err := c.objects(ctx, imagev1.Resource("imagestreams"), quota.Namespace)
		if err != nil {
			return err
		}
		quantities := corev1.ResourceList{streamsName: *apiresource.NewQuantity(int64(len(streams)), apiresource.DecimalSI)}
		current, more := c.settling.keep(keyOf(quota), quota.ResourceVersion, now, keepReserved(quantities, reserved, quota.Status.Used), quota.Status.Used)
		usage := current[streamsName]
		if len(reserved) > 0 || more {
			c.stale([]string{keyOf(quota)})
		}
		if ok && usage.Equal(quantity) && hard.Equal(quota.Spec.Hard[streamsName]) {
			continue
		}
		if err := c.projects.write(ctx, quota, usage); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			c.stale([]string{keyOf(quota)})
		} else if err != nil {
			return fmt.Errorf("write quota %q of project %q: %w", quota.Name, quota.Namespace, err)
		}
	}
	return nil
}
