package volumeplugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// secretTimeout is the timeout for requesting a secret.
const secretTimeout = 30 * time.Second

// source is the `flexVolume:` section of a PersistentVolume or a pod.
type source struct {
	inline          bool // the volume is defined in a pod
	driver, fsType  string
	readOnly        bool
	options         map[string]string
	secret          string // name of the secret; can be empty
	secretNamespace string // empty for the pod's namespace
}

// sourceOf returns the source of a volume spec. A PersistentVolume is read-only if either its
// source or the pod's volume is read-only.
func sourceOf(spec *volume.Spec) (source, error) {
	switch {
	case spec != nil && spec.Volume != nil && spec.Volume.FlexVolume != nil:
		flex := spec.Volume.FlexVolume
		src := source{inline: true, driver: flex.Driver, fsType: flex.FSType, readOnly: flex.ReadOnly, options: flex.Options}
		if flex.SecretRef != nil {
			src.secret = flex.SecretRef.Name
		}
		return src, nil
	case spec != nil && spec.PersistentVolume != nil && spec.PersistentVolume.Spec.FlexVolume != nil:
		flex := spec.PersistentVolume.Spec.FlexVolume
		src := source{driver: flex.Driver, fsType: flex.FSType, readOnly: flex.ReadOnly || spec.ReadOnly, options: flex.Options}
		if flex.SecretRef != nil {
			src.secret, src.secretNamespace = flex.SecretRef.Name, flex.SecretRef.Namespace
		}
		return src, nil
	}
	return source{}, fmt.Errorf("read volume: it is not a FlexVolume")
}

// volume converts the source to the engine's Volume type.
func (s source) volume(name string) flexvolume.Volume {
	return flexvolume.Volume{Name: name, FSType: s.fsType, ReadOnly: s.readOnly, Options: s.options}
}

// secrets reads the referenced secret. The secret's type must be the driver's name, so that a
// volume cannot pass an unrelated secret to a driver.
func (p *plugin) secrets(ctx context.Context, s source, podNamespace string) (map[string][]byte, error) {
	namespace := s.secretNamespace
	if namespace == "" {
		namespace = podNamespace
	}
	if s.secret == "" || namespace == "" {
		return nil, nil
	}
	client := p.host.GetKubeClient()
	if client == nil {
		return nil, fmt.Errorf("read secret %s/%s: no API server is configured", namespace, s.secret)
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, s.secret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", namespace, s.secret, err)
	}
	if secret.Type != corev1.SecretType(p.name) {
		return nil, fmt.Errorf("read secret %s/%s: its type is %q; for this driver it must be %q", namespace, s.secret, secret.Type, p.name)
	}
	return secret.Data, nil
}
