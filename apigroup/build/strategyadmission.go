package build

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// StrategyPlugin is the name of the admission plugin that checks access to build strategies.
const StrategyPlugin = "BuildByStrategy"

// strategyAdmission is the BuildByStrategy admission plugin. To create, change or start a build or
// a configuration, a user requires permission to create builds/docker, builds/source, builds/custom
// or builds/jenkinspipeline, depending on the strategy. Webhooks and triggers start only builds
// that a user with this permission has configured.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 14.
type strategyAdmission struct {
	*admission.Handler
	*buildStore
}

var _ admission.ValidationInterface = &strategyAdmission{}

func newStrategyAdmission(buildStore *buildStore) *strategyAdmission {
	return &strategyAdmission{admission.NewHandler(admission.Create, admission.Update, admission.Connect), buildStore}
}

// Validate rejects requests with a strategy that the user is not allowed to use.
func (c *strategyAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	strategies, err := c.strategies(request.WithNamespace(ctx, a.GetNamespace()), a)
	if err != nil {
		return err
	}
	for _, strategy := range strategies {
		if err := c.checkAccess(ctx, a, strategy); err != nil {
			return err
		}
	}
	return nil
}

// strategies returns the strategies that a request uses.
func (c *strategyAdmission) strategies(ctx context.Context, a admission.Attributes) ([]*buildv1.BuildStrategy, error) {
	switch a.GetResource().GroupResource() {
	case buildv1.Resource("buildconfigs"):
		switch a.GetSubresource() {
		case "":
			return changedStrategy(a), nil
		case "instantiate", binarySubresource:
			config, err := c.config(ctx, a.GetName())
			if err != nil {
				return nil, err
			}
			return []*buildv1.BuildStrategy{&config.Spec.Strategy}, nil
		}
	case buildv1.Resource("builds"):
		switch a.GetSubresource() {
		case "":
			return changedStrategy(a), nil
		case "clone":
			build, err := c.build(ctx, a.GetName())
			if err != nil {
				return nil, err
			}
			return []*buildv1.BuildStrategy{&build.Spec.Strategy}, nil
		}
	}
	return nil, nil
}

// changedStrategy returns the strategy of an object that is being created or whose spec changes.
func changedStrategy(a admission.Attributes) []*buildv1.BuildStrategy {
	switch object := a.GetObject().(type) {
	case *buildv1.BuildConfig:
		if old, ok := a.GetOldObject().(*buildv1.BuildConfig); !ok || !apiequality.Semantic.DeepEqual(old.Spec, object.Spec) {
			return []*buildv1.BuildStrategy{&object.Spec.Strategy}
		}
	case *buildv1.Build:
		if old, ok := a.GetOldObject().(*buildv1.Build); !ok || !apiequality.Semantic.DeepEqual(old.Spec, object.Spec) {
			return []*buildv1.BuildStrategy{&object.Spec.Strategy}
		}
	}
	return nil
}

func (c *strategyAdmission) checkAccess(ctx context.Context, a admission.Attributes, strategy *buildv1.BuildStrategy) error {
	subresource := map[string]string{"Docker": "docker", "Source": "source", "Custom": "custom", "JenkinsPipeline": "jenkinspipeline"}[strategyText(strategy)]
	if subresource == "" {
		return nil // validation reports that the strategy is missing
	}
	decision, _, err := c.deps.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "create", Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
		APIGroup: buildv1.GroupName, APIVersion: buildv1.GroupVersion.Version, Resource: "builds", Subresource: subresource,
	})
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("check access to strategy %s: %w", strategyText(strategy), err))
	}
	if decision != authorizer.DecisionAllow {
		return admission.NewForbidden(a, fmt.Errorf("build strategy %s is not allowed", strategyText(strategy)))
	}
	return nil
}
