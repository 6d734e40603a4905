package serviceca

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/controller"
)

// Annotations, without their prefixes. On services, the first annotation is a request and the next
// three are results. Secrets have the last three annotations.
const (
	secretName     = "serving-cert-secret-name"
	signedBy       = "serving-cert-signed-by"
	failureMessage = "serving-cert-generation-error"
	failureCount   = "serving-cert-generation-error-num"
	expiry         = "expiry"
	serviceUID     = "originating-service-uid"
	serviceName    = "originating-service-name"
)

// maxFailures is the highest recorded failure count. Retries continue after that, at intervals of a
// few minutes.
const maxFailures = 10

// permanentError is an error that persists until a user changes an object. A service annotation
// shows its text to the service's owner.
type permanentError struct{ error }

// certify ensures that a service has a valid certificate.
func (c *Certificates) certify(ctx context.Context, key controller.Key) error {
	object, exists, err := c.services.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	service := object.(*corev1.Service)
	if annotation(service.Annotations, secretName) == "" || service.DeletionTimestamp != nil {
		return nil
	}
	signer, err := c.loadSigner()
	if err != nil {
		return err
	}
	err = c.ensureSecret(ctx, service, signer)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the service or its project is being deleted
	}
	if cause, isPermanent := asPermanentError(err); isPermanent {
		return c.recordFailure(ctx, service, cause)
	}
	if err != nil {
		return err
	}
	if err := c.annotate(ctx, service, map[string]any{signedBy: signer.name(), failureMessage: nil, failureCount: nil}); err != nil {
		return err
	}
	return controller.RequeueAfter(recheckInterval)
}

// asPermanentError reports whether an error cannot be resolved by retrying.
func asPermanentError(err error) (error, bool) {
	if permanent, ok := errors.AsType[permanentError](err); ok {
		return permanent.error, true
	}
	return err, apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// ensureSecret creates or updates a service's certificate secret.
func (c *Certificates) ensureSecret(ctx context.Context, service *corev1.Service, signer *signer) error {
	secrets, name := c.client.CoreV1().Secrets(service.Namespace), annotation(service.Annotations, secretName)
	if messages := validation.NameIsDNSSubdomain(name, false); len(messages) > 0 {
		return permanentError{fmt.Errorf("%q is not a valid name of a secret: %s", name, strings.Join(messages, "; "))}
	}
	hosts := c.serviceHosts(service)
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	exists := err == nil
	switch {
	case !exists:
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: service.Namespace}, Type: corev1.SecretTypeTLS}
	case annotation(secret.Annotations, serviceName) != service.Name || secret.Type != corev1.SecretTypeTLS:
		return permanentError{fmt.Errorf("secret %q already exists and does not belong to this service; delete it or choose another name", name)}
	case annotation(secret.Annotations, serviceUID) == string(service.UID) && signer.isCurrent(secret.Data, hosts):
		return nil
	}
	cert, err := signer.issue(hosts)
	if err != nil {
		return fmt.Errorf("issue service certificate: %w", err)
	}
	setCertificate(secret, service, cert)
	if exists {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
	if _, err = secrets.Create(ctx, secret, metav1.CreateOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("create secret: %w", err)
	}
	return err
}

// serviceHosts returns a service's host names.
func (c *Certificates) serviceHosts(service *corev1.Service) []string {
	host := service.Name + "." + service.Namespace + ".svc"
	return []string{host, host + "." + cmp.Or(c.Domain, "cluster.local")}
}

// setCertificate writes a certificate and OpenShift's annotations to a secret. It replaces an owner
// reference to a deleted service with the same name.
func setCertificate(secret *corev1.Secret, service *corev1.Service, cert *certificate) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = cert.chain, cert.key
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	for _, prefix := range prefixes() {
		secret.Annotations[prefix+serviceUID] = string(service.UID)
		secret.Annotations[prefix+serviceName] = service.Name
		secret.Annotations[prefix+expiry] = cert.expiry.UTC().Format(time.RFC3339)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}
	secret.OwnerReferences = append(slices.DeleteFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == owner.Kind && ref.Name == owner.Name
	}), owner)
}

// recordFailure records an error in a service's annotations and requeues the service with backoff.
func (c *Certificates) recordFailure(ctx context.Context, service *corev1.Service, cause error) error {
	count, err := strconv.Atoi(annotation(service.Annotations, failureCount))
	if err != nil || count < 0 {
		count = 0
	}
	count = min(count+1, maxFailures)
	if err := c.annotate(ctx, service, map[string]any{failureMessage: cause.Error(), failureCount: strconv.Itoa(count)}); err != nil {
		return err
	}
	return controller.RequeueAfter(min(time.Second<<count, 5*time.Minute))
}

// annotate sets a service's annotations under each prefix. A nil value removes an annotation.
func (c *Certificates) annotate(ctx context.Context, service *corev1.Service, values map[string]any) error {
	changes := map[string]any{}
	for _, prefix := range prefixes() {
		for name, value := range values {
			present, isSet := service.Annotations[prefix+name]
			if isSet != (value != nil) || isSet && present != value {
				changes[prefix+name] = value
			}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": service.UID, "annotations": changes}})
	if err != nil {
		return fmt.Errorf("annotate service: %w", err)
	}
	_, err = c.client.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a new service of this name has its own event
	}
	return err
}
