package pod

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/mirrorpod"
)

// constraints is the PodNodeConstraints plugin: only users who are allowed to bind pods (create
// pods/binding) can set a node name, or a node selector with a blacklisted label. The plugin also
// checks pod templates in objects whose controllers create pods.
type constraints struct {
	*admission.Handler
	blacklist  []string
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &constraints{}

func newConstraints(reader io.Reader) (*constraints, error) {
	config := struct {
		metav1.TypeMeta `json:",inline"`
		Blacklist       []string `json:"nodeSelectorLabelBlacklist"`
	}{}
	if err := apiserver.DecodeConfig(reader, "PodNodeConstraintsConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", PodNodeConstraints, err)
	}
	if config.Blacklist == nil {
		config.Blacklist = []string{corev1.LabelHostname}
	}
	return &constraints{Handler: admission.NewHandler(admission.Create, admission.Update), blacklist: config.Blacklist}, nil
}

// SetAuthorizer stores the API server's authorizer.
func (c *constraints) SetAuthorizer(a authorizer.Authorizer) { c.authorizer = a }

// ValidateInitialization returns an error if there is no authorizer.
func (c *constraints) ValidateInitialization() error {
	if c.authorizer == nil {
		return fmt.Errorf("initialize %s: no authorizer", PodNodeConstraints)
	}
	return nil
}

// Validate rejects a node name, or a node selector with a blacklisted label, unless the user or the
// pod's service account is allowed to bind pods.
func (c *constraints) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	spec := specOf(a.GetObject())
	if spec == nil {
		return nil
	}
	subjects := []user.Info{a.GetUserInfo()}
	if pod, ok := a.GetObject().(*corev1.Pod); ok {
		if a.GetOperation() == admission.Update {
			return nil // a pod's node and node selector are immutable
		}
		if mirrorpod.Is(pod, a.GetUserInfo()) {
			return nil
		}
		if name := spec.ServiceAccountName; name != "" {
			subjects = append(subjects, serviceaccount.UserInfo(a.GetNamespace(), name, ""))
		}
	}
	var forbidden []string
	if spec.NodeName != "" {
		forbidden = append(forbidden, "nodeName")
	}
	for _, label := range c.blacklist {
		if _, ok := spec.NodeSelector[label]; ok {
			forbidden = append(forbidden, "the node selector label "+label)
		}
	}
	mayBind := func(u user.Info) bool { return c.mayBind(ctx, u, a.GetNamespace()) }
	if len(forbidden) == 0 || slices.ContainsFunc(subjects, mayBind) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("your role does not allow %s, because it lacks the permission to create pods/binding", strings.Join(forbidden, " and ")))
}

func (c *constraints) mayBind(ctx context.Context, u user.Info, namespace string) bool {
	decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "create", Namespace: namespace, APIVersion: "v1", Resource: "pods", Subresource: "binding", ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// specOf returns a pod's spec or the spec of an object's pod template. It returns nil if the object
// has neither of them.
func specOf(object any) *corev1.PodSpec {
	switch typed := object.(type) {
	case *corev1.Pod:
		return &typed.Spec
	case *corev1.ReplicationController:
		if typed.Spec.Template != nil {
			return &typed.Spec.Template.Spec
		}
	case *corev1.PodTemplate:
		return &typed.Template.Spec
	case *kubeappsv1.Deployment:
		return &typed.Spec.Template.Spec
	case *kubeappsv1.ReplicaSet:
		return &typed.Spec.Template.Spec
	case *kubeappsv1.StatefulSet:
		return &typed.Spec.Template.Spec
	case *batchv1.Job:
		return &typed.Spec.Template.Spec
	case *batchv1.CronJob:
		return &typed.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}
