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
	listers "k8s.io/client-go/listers/core/v1"
)

// streamsName is what quotas call the number of image streams. Kubernetes, which enforces and counts the ResourceQuota of a project, does not know
// it, and leaves what others write for it alone.
const streamsName corev1.ResourceName = "openshift.io/imagestreams"

// projectQuotas are the ResourceQuotas that limit image streams by that name.
type projectQuotas struct {
	client kubernetes.Interface
	cached listers.ResourceQuotaLister
}

// limiting are those of a namespace, as the API server's cache has them; of all for metav1.NamespaceAll.
func (p *projectQuotas) limiting(namespace string) ([]*corev1.ResourceQuota, error) {
	all, err := p.cached.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list quotas of project %q: %w", namespace, err)
	}
	var limiting []*corev1.ResourceQuota
	for _, one := range all {
		if _, ok := one.Spec.Hard[streamsName]; ok {
			limiting = append(limiting, one)
		}
	}
	return limiting, nil
}

// GetQuotas gives the quotas of a namespace, limiting image streams alone.
func (p *projectQuotas) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	cached, err := p.limiting(namespace)
	if err != nil {
		return nil, err
	}
	var quotas []corev1.ResourceQuota
	for _, one := range cached {
		now, err := p.client.CoreV1().ResourceQuotas(namespace).Get(context.Background(), one.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read quota %q: %w", one.Name, err)
		}
		limit := corev1.ResourceList{streamsName: now.Spec.Hard[streamsName]}
		now.Spec.Hard, now.Status.Hard = limit, limit
		quotas = append(quotas, *now)
	}
	return quotas, nil
}

// UpdateQuotaStatus writes how many image streams are used, unless the quota was changed since it was read.
func (p *projectQuotas) UpdateQuotaStatus(used *corev1.ResourceQuota) error {
	return p.write(context.Background(), used, used.Status.Used[streamsName])
}

func (p *projectQuotas) write(ctx context.Context, read *corev1.ResourceQuota, streams apiresource.Quantity) error {
	quotas := p.client.CoreV1().ResourceQuotas(read.Namespace)
	now, err := quotas.Get(ctx, read.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.ResourceVersion = read.ResourceVersion
	if now.Status.Hard == nil {
		now.Status.Hard = corev1.ResourceList{}
	}
	if now.Status.Used == nil {
		now.Status.Used = corev1.ResourceList{}
	}
	now.Status.Hard[streamsName], now.Status.Used[streamsName] = now.Spec.Hard[streamsName], streams
	_, err = quotas.UpdateStatus(ctx, now, metav1.UpdateOptions{})
	return err
}

// flight is the name of a project's quota among requests under way.
func flight(one *corev1.ResourceQuota) string { return one.Namespace + "/" + one.Name }

// countProjects counts image streams where a project's quota limits them.
func (c *counter) countProjects(ctx context.Context, now time.Time) error {
	quotas, err := c.projects.limiting(metav1.NamespaceAll)
	if err != nil {
		return err
	}
	for _, one := range quotas {
		used, counted := one.Status.Used[streamsName]
		hard := one.Status.Hard[streamsName]
		if !c.due(flight(one), counted && hard.Equal(one.Spec.Hard[streamsName]), now) {
			continue
		}
		reserved := c.flights.reserved(flight(one))[one.Namespace]
		streams, err := c.objects(ctx, imagev1.Resource("imagestreams"), one.Namespace)
		if err != nil {
			return err
		}
		there := corev1.ResourceList{streamsName: *apiresource.NewQuantity(int64(len(streams)), apiresource.DecimalSI)}
		is := keepReserved(there, reserved, one.Status.Used)[streamsName]
		if len(reserved) > 0 {
			c.stale([]string{flight(one)})
		}
		if counted && is.Equal(used) && hard.Equal(one.Spec.Hard[streamsName]) {
			continue
		}
		if err := c.projects.write(ctx, one, is); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			c.stale([]string{flight(one)})
		} else if err != nil {
			return fmt.Errorf("write quota %q of project %q: %w", one.Name, one.Namespace, err)
		}
	}
	return nil
}
