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

// StrategyPlugin is the admission plug-in that checks who may build how, as the configuration calls it.
const StrategyPlugin = "BuildByStrategy"

// strategyCheck is the plug-in: whoever makes, changes or starts a build or a configuration needs the right to create builds/docker, builds/source,
// builds/custom or builds/jenkinspipeline, as its strategy is. Web hooks and triggers start what somebody with the right has configured.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 14.
type strategyCheck struct {
	*admission.Handler
	*starter
}

var _ admission.ValidationInterface = &strategyCheck{}

func newStrategyCheck(starter *starter) *strategyCheck {
	return &strategyCheck{admission.NewHandler(admission.Create, admission.Update, admission.Connect), starter}
}

// Validate refuses what the user may not build.
func (c *strategyCheck) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	strategies, err := c.strategies(request.WithNamespace(ctx, a.GetNamespace()), a)
	if err != nil {
		return err
	}
	for _, strategy := range strategies {
		if err := c.mayBuild(ctx, a, strategy); err != nil {
			return err
		}
	}
	return nil
}

// strategies are those that a request needs the right to.
func (c *strategyCheck) strategies(ctx context.Context, a admission.Attributes) ([]*buildv1.BuildStrategy, error) {
	switch a.GetResource().GroupResource() {
	case buildv1.Resource("buildconfigs"):
		switch a.GetSubresource() {
		case "":
			return written(a), nil
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
			return written(a), nil
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

// written is the strategy of an object that is being made or whose specification changes.
func written(a admission.Attributes) []*buildv1.BuildStrategy {
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

func (c *strategyCheck) mayBuild(ctx context.Context, a admission.Attributes, strategy *buildv1.BuildStrategy) error {
	subresource := map[string]string{"Docker": "docker", "Source": "source", "Custom": "custom", "JenkinsPipeline": "jenkinspipeline"}[strategyText(strategy)]
	if subresource == "" {
		return nil // validation says what is missing
	}
	decision, _, err := c.deps.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "create", Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
		APIGroup: buildv1.GroupName, APIVersion: buildv1.GroupVersion.Version, Resource: "builds", Subresource: subresource,
	})
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("check the right to strategy %s: %w", strategyText(strategy), err))
	}
	if decision != authorizer.DecisionAllow {
		return admission.NewForbidden(a, fmt.Errorf("build strategy %s is not allowed", strategyText(strategy)))
	}
	return nil
}
