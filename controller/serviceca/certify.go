package serviceca

import (
	"cmp"
	"context"
	"encoding/json"
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

// Annotations, without their prefixes. The first is what services ask with, the next three are written to them, the last three to secrets.
const (
	secretName  = "serving-cert-secret-name"
	signedBy    = "serving-cert-signed-by"
	failure     = "serving-cert-generation-error"
	failures    = "serving-cert-generation-error-num"
	expiry      = "expiry"
	serviceUID  = "originating-service-uid"
	serviceName = "originating-service-name"
)

// maxFailures is the number up to which failures of a service are counted. It is tried again afterwards too, every few minutes.
const maxFailures = 10

// refusal is why a service gets no certificate until somebody changes something; its text is shown to the service's owner.
type refusal struct{ error }

// certify brings the certificate of a service to what it should be.
func (c *Certificates) certify(ctx context.Context, key controller.Key) error {
	object, there, err := c.services.GetStore().GetByKey(key.String())
	if err != nil || !there {
		return err
	}
	service := object.(*metav1.PartialObjectMetadata)
	if annotation(service.Annotations, secretName) == "" || service.DeletionTimestamp != nil {
		return nil
	}
	signer, err := c.authority()
	if err != nil {
		return err
	}
	err = c.keep(ctx, service, signer)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the service or its project goes
	}
	if why, refused := asRefusal(err); refused {
		return c.report(ctx, service, why)
	}
	if err != nil {
		return err
	}
	if err := c.annotate(ctx, service, map[string]any{signedBy: signer.name(), failure: nil, failures: nil}); err != nil {
		return err
	}
	return controller.After(lookAgain)
}

// asRefusal finds the errors that another try alone does not mend.
func asRefusal(err error) (error, bool) {
	if why, is := err.(refusal); is {
		return why.error, true
	}
	return err, apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// keep makes the secret of a service, or what is in it anew.
func (c *Certificates) keep(ctx context.Context, service *metav1.PartialObjectMetadata, signer *authority) error {
	secrets, name := c.client.CoreV1().Secrets(service.Namespace), annotation(service.Annotations, secretName)
	if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
		return refusal{fmt.Errorf("%q is no name of a secret: %s", name, strings.Join(problems, "; "))}
	}
	hosts := c.hosts(service)
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	made := err == nil
	switch {
	case !made:
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: service.Namespace}, Type: corev1.SecretTypeTLS}
	case annotation(secret.Annotations, serviceName) != service.Name || secret.Type != corev1.SecretTypeTLS:
		return refusal{fmt.Errorf("secret %q is there already and was not made for this service; delete it or choose another name", name)}
	case annotation(secret.Annotations, serviceUID) == string(service.UID) && signer.good(secret.Data, hosts):
		return nil
	}
	certificate, err := signer.issue(hosts)
	if err != nil {
		return fmt.Errorf("issue certificate of service: %w", err)
	}
	fill(secret, service, certificate)
	if made {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
	if _, err = secrets.Create(ctx, secret, metav1.CreateOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("make secret: %w", err)
	}
	return err
}

// hosts are the names of a service.
func (c *Certificates) hosts(service *metav1.PartialObjectMetadata) []string {
	host := service.Name + "." + service.Namespace + ".svc"
	return []string{host, host + "." + cmp.Or(c.Domain, "cluster.local")}
}

// fill writes a certificate into a secret, with what OpenShift tells about it. A former service of the same name does not own it any more.
func fill(secret *corev1.Secret, service *metav1.PartialObjectMetadata, certificate *issued) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = certificate.chain, certificate.key
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	for _, prefix := range prefixes() {
		secret.Annotations[prefix+serviceUID] = string(service.UID)
		secret.Annotations[prefix+serviceName] = service.Name
		secret.Annotations[prefix+expiry] = certificate.expiry.UTC().Format(time.RFC3339)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}
	secret.OwnerReferences = append(slices.DeleteFunc(secret.OwnerReferences, func(other metav1.OwnerReference) bool {
		return other.Kind == owner.Kind && other.Name == owner.Name
	}), owner)
}

// report tells a service's owner why it has no certificate, and looks again after a growing while.
func (c *Certificates) report(ctx context.Context, service *metav1.PartialObjectMetadata, why error) error {
	count, err := strconv.Atoi(annotation(service.Annotations, failures))
	if err != nil || count < 0 {
		count = 0
	}
	count = min(count+1, maxFailures)
	if err := c.annotate(ctx, service, map[string]any{failure: why.Error(), failures: strconv.Itoa(count)}); err != nil {
		return err
	}
	return controller.After(min(time.Second<<count, 5*time.Minute))
}

// annotate brings annotations of a service to values, under each prefix; nil removes one.
func (c *Certificates) annotate(ctx context.Context, service *metav1.PartialObjectMetadata, values map[string]any) error {
	changes := map[string]any{}
	for _, prefix := range prefixes() {
		for name, value := range values {
			present, there := service.Annotations[prefix+name]
			if there != (value != nil) || there && present != value {
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
		return nil // it is another one now, which comes by itself
	}
	return err
}
