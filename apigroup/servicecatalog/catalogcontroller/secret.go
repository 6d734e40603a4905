package catalogcontroller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/singlepath"
)

// injectSecret creates or updates the secret for a binding. It does not change a secret that the
// binding does not own.
func (r *reconciler) injectSecret(ctx context.Context, binding *v1beta1.ServiceBinding, credentials map[string]any) error {
	data, err := r.secretData(ctx, binding, credentials)
	if err != nil {
		return err
	}
	secrets := r.kube.CoreV1().Secrets(binding.Namespace)
	existing, err := secrets.Get(ctx, binding.Spec.SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:            binding.Spec.SecretName,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(binding, v1beta1.GroupVersion().WithKind("ServiceBinding"))},
			},
			Data: data,
		}, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case !metav1.IsControlledBy(existing, binding):
		return fmt.Errorf("secret %q exists and does not belong to the binding; delete it, or name another secret in a new binding", existing.Name)
	case apiequality.Semantic.DeepEqual(existing.Data, data):
		return nil
	}
	changed := existing.DeepCopy()
	changed.Data = data
	_, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// ejectSecret deletes the secret for a binding.
func (r *reconciler) ejectSecret(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	secrets := r.kube.CoreV1().Secrets(binding.Namespace)
	existing, err := secrets.Get(ctx, binding.Spec.SecretName, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	if !metav1.IsControlledBy(existing, binding) {
		return nil
	}
	uid := existing.UID
	return ignoreNotFound(secrets.Delete(ctx, existing.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
}

// secretData returns the secret's data after the transforms: one key for each credential. Strings
// are stored unchanged, and other values as JSON.
func (r *reconciler) secretData(ctx context.Context, binding *v1beta1.ServiceBinding, credentials map[string]any) (map[string][]byte, error) {
	data := map[string][]byte{}
	for key, value := range credentials {
		if text, ok := value.(string); ok {
			data[key] = []byte(text)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode credential %q: %w", key, err)
		}
		data[key] = text
	}
	for i := range binding.Spec.SecretTransforms {
		if err := r.transform(ctx, binding.Namespace, &binding.Spec.SecretTransforms[i], credentials, data); err != nil {
			return nil, fmt.Errorf("apply spec.secretTransforms[%d]: %w", i, err)
		}
		if sizeOf(data) > maxSecret {
			return nil, fmt.Errorf("apply spec.secretTransforms[%d]: %w", i, errTooLarge)
		}
	}
	return data, nil
}

func (r *reconciler) transform(ctx context.Context, namespace string, transform *v1beta1.SecretTransform,
	credentials map[string]any, data map[string][]byte) error {
	switch {
	case transform.RenameKey != nil:
		if value, ok := data[transform.RenameKey.From]; ok {
			delete(data, transform.RenameKey.From)
			data[transform.RenameKey.To] = value
		}
	case transform.RemoveKey != nil:
		delete(data, transform.RemoveKey.Key)
	case transform.AddKeysFrom != nil:
		if transform.AddKeysFrom.SecretRef == nil {
			return errors.New("addKeysFrom.secretRef is missing")
		}
		secret, err := r.kube.CoreV1().Secrets(namespace).Get(ctx, transform.AddKeysFrom.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range secret.Data {
			data[key] = value
		}
	case transform.AddKey != nil:
		value, err := addedValue(transform.AddKey, credentials)
		if err != nil {
			return err
		}
		data[transform.AddKey.Key] = value
	}
	return nil
}

func addedValue(add *v1beta1.AddKeyTransform, credentials map[string]any) ([]byte, error) {
	switch {
	case add.StringValue != nil:
		return []byte(*add.StringValue), nil
	case add.JSONPathExpression == nil:
		return add.Value, nil
	}
	expression, err := singlepath.Parse("credentials", *add.JSONPathExpression)
	if err != nil {
		return nil, fmt.Errorf("jsonPathExpression %q: %w", *add.JSONPathExpression, err)
	}
	value := limitedBuffer{rest: maxSecret}
	// The error is not returned, because it can contain credentials.
	switch err := expression.Execute(&value, credentials); {
	case errors.Is(err, errTooLarge):
		return nil, errTooLarge
	case err != nil:
		return nil, fmt.Errorf("jsonPathExpression %q does not match the credentials", *add.JSONPathExpression)
	}
	return value.Bytes(), nil
}

// maxSecret is the maximum size of a secret's data, in bytes. It is the API server's limit. It is
// checked after each transform, so many transforms require no more memory than one transform.
const maxSecret = corev1.MaxSecretSize

var errTooLarge = fmt.Errorf("the secret would have more than %d bytes", maxSecret)

// limitedBuffer is a buffer of limited size. rest is the number of bytes that it can still accept.
type limitedBuffer struct {
	bytes.Buffer
	rest int
}

// Write appends p. It returns an error if p exceeds the remaining space.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.rest -= len(p); b.rest < 0 {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

func sizeOf(data map[string][]byte) (bytes int) {
	for key, value := range data {
		bytes += len(key) + len(value)
	}
	return bytes
}
