package rollout

import (
	"slices"

	appsv1 "github.com/openshift/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Causes returns the causes of a new deployment, or nil if no new deployment is required. last is
// the configuration of the latest deployment, or nil.
//
// The first deployment waits until each ImageChange trigger has an image. A later deployment
// requires a template change: a new image of an automatic ImageChange trigger or, if the
// configuration has a ConfigChange trigger, any change.
func Causes(dc, last *appsv1.DeploymentConfig) []appsv1.DeploymentCause {
	byConfig := []appsv1.DeploymentCause{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	hasConfig := HasTrigger(dc, appsv1.DeploymentTriggerOnConfigChange)
	if last == nil {
		images, waits := newImages(dc, nil)
		switch {
		case waits:
			return nil
		case len(images) > 0:
			return images
		case hasConfig:
			return byConfig
		}
		return nil
	}
	if apiequality.Semantic.DeepEqual(dc.Spec.Template, last.Spec.Template) {
		return nil
	}
	if images, _ := newImages(dc, last); len(images) > 0 {
		return images
	}
	if hasConfig {
		return byConfig
	}
	return nil
}

// newImages returns a cause for each automatic ImageChange trigger whose image differs from the
// image of the latest deployment. waits reports whether a trigger has no image yet.
func newImages(dc, last *appsv1.DeploymentConfig) (causes []appsv1.DeploymentCause, waits bool) {
	for _, trigger := range dc.Spec.Triggers {
		params := trigger.ImageChangeParams
		if trigger.Type != appsv1.DeploymentTriggerOnImageChange || params == nil {
			continue
		}
		if params.LastTriggeredImage == "" {
			waits = true
			continue
		}
		if params.Automatic && imageOf(last, params) != params.LastTriggeredImage {
			causes = append(causes, appsv1.DeploymentCause{
				Type: appsv1.DeploymentTriggerOnImageChange, ImageTrigger: &appsv1.DeploymentCauseImageTrigger{From: params.From},
			})
		}
	}
	return causes, waits
}

// imageOf returns the image that a deployment used for a trigger.
func imageOf(last *appsv1.DeploymentConfig, params *appsv1.DeploymentTriggerImageChangeParams) string {
	if last == nil {
		return ""
	}
	i := slices.IndexFunc(last.Spec.Triggers, func(t appsv1.DeploymentTriggerPolicy) bool {
		return t.ImageChangeParams != nil && t.ImageChangeParams.From == params.From
	})
	if i < 0 {
		return ""
	}
	return last.Spec.Triggers[i].ImageChangeParams.LastTriggeredImage
}
