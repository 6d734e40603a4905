package ansible

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secret is a secret in the broker's namespace whose keys become variables of a bundle's playbooks.
type Secret struct {
	// Name is the name of the secret. Bundle is the name of the bundle's image stream. The name in
	// the specification is not used, because any image can specify any name.
	Name, Bundle string
}

// Directories in a bundle's pod, and the environment variable that contains the path of the state
// directory.
const (
	secretsDir    = "/etc/apb-secrets/apb-"
	stateDir      = "/etc/apb/state"
	stateVariable = "BUNDLE_STATE_LOCATION"
)

// maxState is the maximum size of a bundle's state in the instance's record, as JSON, in bytes.
const maxState = 256 << 10

var errState = errors.New("the bundle's state cannot be stored")

// secretsOf returns the names of the secrets that the pods of a bundle mount.
func (b *broker) secretsOf(stream string) (names []string) {
	for _, secret := range b.options.Secrets {
		if secret.Bundle == stream {
			names = append(names, secret.Name)
		}
	}
	return names
}

// copyMounts copies a bundle's secrets and its state into the sandbox. The state is in a ConfigMap
// that has the pod's name and that the bundle can create or change.
func (b *broker) copyMounts(ctx context.Context, rec *record) error {
	name := rec.Operation.Name
	for _, secret := range b.secretsOf(rec.Operation.Bundle.Stream) {
		stored, err := b.kube.CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read secret %s/%s of ansibleServiceBrokerConfig.secrets: %w", namespace, secret, err)
		}
		_, err = b.kube.CoreV1().Secrets(name).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}, Data: stored.Data}, metav1.CreateOptions{})
		if err = ignoreExisting(err); err != nil {
			return err
		}
	}
	if len(rec.State) == 0 {
		return nil
	}
	_, err := b.kube.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: rec.State}, metav1.CreateOptions{})
	return ignoreExisting(err)
}

// mount adds a bundle's secrets and its state to the pod.
func (b *broker) mount(pod *corev1.Pod, rec *record) {
	spec := &pod.Spec
	add := func(name, dir string, source corev1.VolumeSource) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true})
	}
	for i, secret := range b.secretsOf(rec.Operation.Bundle.Stream) {
		add(fmt.Sprintf("secret-%d", i), secretsDir+secret, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}})
	}
	spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: stateVariable, Value: stateDir})
	if len(rec.State) > 0 {
		add("state", stateDir, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: pod.Name}}})
	}
}

// readState updates the record with the state that a bundle has written. If the bundle has not
// written a state, the record's state does not change.
func (b *broker) readState(ctx context.Context, rec *record) error {
	name := rec.Operation.Name
	stored, err := b.kube.CoreV1().ConfigMaps(name).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read state of operation %q: %w", name, err)
	}
	if len(stored.BinaryData) > 0 {
		return fmt.Errorf("%w: ConfigMap %s/%s has binary data; encode it as text", errState, name, name)
	}
	text, err := json.Marshal(stored.Data)
	if err != nil {
		return fmt.Errorf("encode state of operation %q: %w", name, err)
	}
	if len(text) > maxState {
		return fmt.Errorf("%w: ConfigMap %s/%s has %d bytes as JSON, more than %d", errState, name, name, len(text), maxState)
	}
	rec.State = stored.Data
	return nil
}

// hideSecrets removes from a specification the parameters whose values come from the bundle's
// secrets. A secret that does not exist hides no parameters.
func (b *broker) hideSecrets(ctx context.Context, stream string, s *spec) error {
	for _, name := range b.secretsOf(stream) {
		secret, err := b.kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read secret %s/%s of ansibleServiceBrokerConfig.secrets: %w", namespace, name, err)
		}
		hidden := func(p parameter) bool { return secret.Data[p.Name] != nil }
		for i := range s.Plans {
			s.Plans[i].Parameters = slices.DeleteFunc(s.Plans[i].Parameters, hidden)
			s.Plans[i].BindParameters = slices.DeleteFunc(s.Plans[i].BindParameters, hidden)
		}
	}
	return nil
}
