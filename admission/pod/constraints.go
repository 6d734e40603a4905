package pod

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apiserver"
)

// constraints is the plugin PodNodeConstraints: only those who may bind pods (create pods/binding) may name a node, or select nodes by a
// label of the black list. It also checks the templates of what makes pods, because their controllers make the pods.
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

// SetAuthorizer gives the API server's authorizer.
func (c *constraints) SetAuthorizer(a authorizer.Authorizer) { c.authorizer = a }

// ValidateInitialization says whether the authorizer was given.
func (c *constraints) ValidateInitialization() error {
	if c.authorizer == nil {
		return fmt.Errorf("%s was given no authorizer", PodNodeConstraints)
	}
	return nil
}

// Validate refuses a choice of nodes by someone who may not choose.
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
			return nil // neither can be changed in a pod
		}
		if _, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored {
			return nil
		}
		if name := spec.ServiceAccountName; name != "" {
			subjects = append(subjects, serviceaccount.UserInfo(a.GetNamespace(), name, ""))
		}
	}
	var refused []string
	if spec.NodeName != "" {
		refused = append(refused, "nodeName")
	}
	for _, label := range c.blacklist {
		if _, ok := spec.NodeSelector[label]; ok {
			refused = append(refused, "the node selector label "+label)
		}
	}
	if len(refused) == 0 || slices.ContainsFunc(subjects, func(who user.Info) bool { return c.mayBind(ctx, who, a.GetNamespace()) }) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("%s is not allowed by your role, which lacks pods/binding", strings.Join(refused, " and ")))
}

func (c *constraints) mayBind(ctx context.Context, who user.Info, namespace string) bool {
	decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "create", Namespace: namespace, APIVersion: "v1", Resource: "pods", Subresource: "binding", ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// specOf is the spec of a pod or of the pods that an object makes, nil for any other object.
func specOf(object any) *corev1.PodSpec {
	switch made := object.(type) {
	case *corev1.Pod:
		return &made.Spec
	case *corev1.ReplicationController:
		if made.Spec.Template != nil {
			return &made.Spec.Template.Spec
		}
	case *corev1.PodTemplate:
		return &made.Template.Spec
	case *appsv1.Deployment:
		return &made.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &made.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &made.Spec.Template.Spec
	case *batchv1.Job:
		return &made.Spec.Template.Spec
	case *batchv1.CronJob:
		return &made.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}
