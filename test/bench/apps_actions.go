package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	imageChanges    = 10
	templateRuns    = 30
	templateObjects = 100
)

// measureImages changes a tag's image repeatedly. Each change triggers a deployment of an
// application that has no pods.
func (w *appFixture) measureImages(ctx context.Context) error {
	const name = appName + "-image"
	if _, err := w.images.ImageStreams("default").Create(ctx, &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	template := podTemplate(name, 0)
	dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentConfigSpec{
		Selector: template.Labels, Template: &template,
		Triggers: []appsv1.DeploymentTriggerPolicy{{
			Type: appsv1.DeploymentTriggerOnImageChange,
			ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
				Automatic: true, ContainerNames: []string{"pause"}, From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: name + ":latest"},
			},
		}},
	}}
	if _, err := w.apps.DeploymentConfigs("default").Create(ctx, dc, metav1.CreateOptions{}); err != nil {
		return err
	}
	for version := range imageChanges {
		took, err := w.changeImage(ctx, name, version+1)
		if err != nil {
			return err
		}
		w.result.image = append(w.result.image, took)
		// Without this wait, the next deployment would cancel this deployment.
		if err := poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
			rc, err := w.client.CoreV1().ReplicationControllers("default").Get(ctx, fmt.Sprintf("%s-%d", name, version+1), metav1.GetOptions{})
			return err == nil && rc.Annotations[appsv1.DeploymentStatusAnnotation] == string(appsv1.DeploymentStatusComplete), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// changeImage points the tag to another image. It returns the time until the ReplicationController
// for the new version exists.
func (w *appFixture) changeImage(ctx context.Context, name string, version int) (time.Duration, error) {
	digest := fmt.Sprintf("sha256:%064x", version)
	mapping := &imagev1.ImageStreamMapping{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Tag: "latest",
		Image: imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: digest}, DockerImageReference: "registry.example.com/app@" + digest},
	}
	start := time.Now()
	if _, err := w.images.ImageStreamMappings("default").Create(ctx, mapping, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	err := poll(ctx, 2*time.Millisecond, func(ctx context.Context) (bool, error) {
		match, err := w.client.CoreV1().ReplicationControllers("default").List(ctx, metav1.ListOptions{
			LabelSelector: appsv1.DeploymentConfigAnnotation + "=" + name, FieldSelector: fmt.Sprintf("metadata.name=%s-%d", name, version),
		})
		return err == nil && len(match.Items) == 1, err
	})
	return time.Since(start), err
}

// measureTemplate processes a template with many objects.
func (w *appFixture) measureTemplate(ctx context.Context) error {
	template := &templatev1.Template{
		TypeMeta: metav1.TypeMeta{APIVersion: templatev1.GroupVersion.String(), Kind: "Template"}, ObjectMeta: metav1.ObjectMeta{Name: appName},
		Parameters:   []templatev1.Parameter{{Name: "NAME", Value: "shop"}, {Name: "PASSWORD", Generate: "expression", From: "[a-zA-Z0-9]{16}"}, {Name: "SIZE", Value: "3"}},
		ObjectLabels: map[string]string{"app": "${NAME}"},
	}
	for i := range templateObjects {
		template.Objects = append(template.Objects, runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"${NAME}-%d"},
			"spec":{"replicas":"${{SIZE}}","template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/${NAME}:1","env":[{"name":"PASSWORD","value":"${PASSWORD}"}]}]}}}}`, i)})
	}
	body, err := json.Marshal(template)
	if err != nil {
		return err
	}
	for range templateRuns {
		start := time.Now()
		response, err := w.client.CoreV1().RESTClient().Post().AbsPath("/apis/template.openshift.io/v1/namespaces/default/processedtemplates").
			SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
		if err != nil {
			return err
		}
		w.result.template = append(w.result.template, time.Since(start))
		if count := strings.Count(string(response), `"shop-`); count != templateObjects {
			return fmt.Errorf("%d objects were returned, not %d", count, templateObjects)
		}
	}
	return nil
}
