package ansible

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespace is the namespace of the secrets that store the records. recordKey is the key of a
// record in its secret.
const (
	namespace = "openshift-ansible-service-broker"
	recordKey = "record"
)

// record is an instance's stored state.
type record struct {
	ID        string         `json:"-"`
	Service   string         `json:"service"`
	Plan      string         `json:"plan"`
	Namespace string         `json:"namespace"`
	Bundle    source         `json:"bundle"`
	Values    map[string]any `json:"parameters"`
	// Provisioned means that an operation has created the instance.
	Provisioned bool           `json:"provisioned"`
	Credentials map[string]any `json:"credentials,omitempty"`
	// Dashboard is the URL of the instance's dashboard, or "".
	Dashboard string                    `json:"dashboard,omitempty"`
	Bindings  map[string]*bindingRecord `json:"bindings,omitempty"`
	// State is the state that the bundle has stored. The keys are file names.
	State map[string]string `json:"state,omitempty"`
	// Operation is the last operation, which can be in progress.
	Operation *operation `json:"operation,omitempty"`

	secret *corev1.Secret
}

// source identifies an instance's bundle, which can disappear from the catalog.
type source struct {
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
	Image     string `json:"image"`
	Name      string `json:"name"`
	PlanName  string `json:"planName"`
	// Separate means that the bundle runs once for each binding.
	Separate bool `json:"separate"`
	// Runtime is the value of runtimeLabel. It is 0 in a record of a release that ran only bundles
	// of version 2.
	Runtime int `json:"runtime,omitempty"`
}

// bindingRecord is the stored state of a binding. It contains the credentials, or the reason why
// the binding failed.
type bindingRecord struct {
	Values      map[string]any `json:"parameters,omitempty"`
	Credentials map[string]any `json:"credentials,omitempty"`
	Failure     string         `json:"failure,omitempty"`
}

// operation is the stored state of one run of the bundle. The sandbox, the pod and the pod's role
// bindings have the operation's name.
type operation struct {
	Name        string         `json:"name"`
	Action      string         `json:"action"`
	Binding     string         `json:"binding,omitempty"`
	Plan        string         `json:"plan,omitempty"`
	Bundle      source         `json:"bundle"`
	Values      map[string]any `json:"parameters,omitempty"`
	User        string         `json:"user"`
	State       string         `json:"state"`
	Description string         `json:"description,omitempty"`
	// Credentials are the credentials that the broker has read from the container of a bundle of
	// runtime version 1. They move to the instance or the binding when the operation ends.
	Credentials map[string]any `json:"credentials,omitempty"`
}

func secretName(id string) string { return "instance-" + id }

// load returns an instance's record, or nil.
func (b *broker) load(ctx context.Context, id string) (*record, error) {
	secret, err := b.kube.CoreV1().Secrets(namespace).Get(ctx, secretName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of instance %q: %w", id, err)
	}
	return decodeSecret(secret)
}

// selectRecords returns the records whose labels match a selector.
func (b *broker) selectRecords(ctx context.Context, selector string) (all []*record, err error) {
	secrets, err := b.kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list instance records: %w", err)
	}
	for i := range secrets.Items {
		rec, err := decodeSecret(&secrets.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return all, nil
}

// decodeSecret returns the record that a secret contains.
func decodeSecret(secret *corev1.Secret) (*record, error) {
	id := strings.TrimPrefix(secret.Name, secretName(""))
	rec := &record{ID: id, secret: secret}
	if err := json.Unmarshal(secret.Data[recordKey], rec); err != nil {
		return nil, fmt.Errorf("decode the record of instance %q: %w", id, err)
	}
	if rec.Bindings == nil {
		rec.Bindings = map[string]*bindingRecord{}
	}
	return rec, nil
}

// store writes a record. It returns an error on a conflict, which causes the platform to retry its
// request.
func (b *broker) store(ctx context.Context, rec *record) error {
	content, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("encode the record of instance %q: %w", rec.ID, err)
	}
	secrets := b.kube.CoreV1().Secrets(namespace)
	if rec.secret == nil {
		rec.secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secretName(rec.ID), Labels: rec.labels()}, Data: map[string][]byte{recordKey: content},
		}, metav1.CreateOptions{})
	} else {
		changed := rec.secret.DeepCopy()
		changed.Labels, changed.Data = rec.labels(), map[string][]byte{recordKey: content}
		rec.secret, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("store the record of instance %q: %w", rec.ID, err)
	}
	return nil
}

// Labels on the secrets that contain records. projectLabel contains the instance's project.
// runningLabel means that an operation is in progress.
const (
	projectLabel = "slipway.openshift.io/ansible-project"
	runningLabel = "slipway.openshift.io/ansible-running"
)

func (rec *record) labels() map[string]string {
	running := rec.Operation != nil && rec.Operation.State == inProgress
	return map[string]string{projectLabel: rec.Namespace, runningLabel: strconv.FormatBool(running)}
}

// forget deletes a record, and the instance's role binding.
func (b *broker) forget(ctx context.Context, rec *record) error {
	if err := b.release(ctx, rec.Namespace, heldName(rec.ID)); err != nil {
		return err
	}
	err := b.kube.CoreV1().Secrets(namespace).Delete(ctx, secretName(rec.ID), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the record of instance %q: %w", rec.ID, err)
	}
	return nil
}
