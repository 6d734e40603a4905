package newapp

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generatedBy is the annotation that contains the command that created an object.
const generatedBy = "openshift.io/generated-by"

// importedFrom is the tag annotation that contains the reference of the image for which the tag was
// created.
const importedFrom = "openshift.io/imported-from"

// entrypoint is the format of a pod annotation that contains the command of a container's image as
// a JSON array. The format's argument is the container's name.
const entrypoint = "openshift.io/container.%s.image.entrypoint"

// Objects returns the objects for a plan's parts. The image streams are first, because other
// objects refer to them, followed by builds, deployments and services.
func (p *Plan) Objects() (all []runtime.Object) {
	var builds, deployments, services []runtime.Object
	streams := map[string]*imagev1.ImageStream{}
	stream := func(name string, tags ...imagev1.TagReference) {
		if streams[name] == nil {
			streams[name] = p.stream(name)
			all = append(all, streams[name])
		}
		spec := &streams[name].Spec
		for _, tag := range tags {
			if !slices.ContainsFunc(spec.Tags, func(t imagev1.TagReference) bool { return t.Name == tag.Name }) {
				spec.Tags = append(spec.Tags, tag)
			}
		}
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		if image := part.Image; image != nil && image.Stream == "" {
			image.Namespace, image.Stream = p.Namespace, p.tracked(*part)
			stream(image.Stream, follow(image))
		} else if image != nil && part.Build == nil && i == 0 && p.Name != "" && p.Name != image.Stream {
			stream(p.Name, track(image))
		}
		if part.Build != nil {
			if name := p.outputStream(*part); name != "" {
				stream(name)
			}
			builds = append(builds, p.buildConfig(*part))
		}
	}
	for _, pod := range p.Pods() {
		if !p.deployed(pod[0]) {
			continue
		}
		dc := p.deploymentConfig(pod)
		deployments = append(deployments, dc)
		if service := p.service(dc); len(service.Spec.Ports) > 0 {
			services = append(services, service)
		}
	}
	all = append(all, builds...)
	all = append(all, deployments...)
	return append(all, services...)
}

// tracked returns the name of the image stream for a part whose image comes from a registry. If the
// build would otherwise push to the tag of its own base image, the name has the suffix -base.
func (p *Plan) tracked(part Part) string {
	name := Name(part.Image.Name)
	if part.Build == nil {
		return name
	}
	if to := p.output(part); p.outputStream(part) == name && to.Name == name+":"+part.Image.Tag {
		name += "-base"
	}
	return name
}

// follow returns a tag that refers to an image in a registry.
func follow(image *Image) imagev1.TagReference {
	return imagev1.TagReference{
		Name: image.Tag, From: &corev1.ObjectReference{Kind: "DockerImage", Name: image.Name},
		Annotations: map[string]string{importedFrom: image.Name}, ImportPolicy: imagev1.TagImportPolicy{Insecure: image.Insecure},
	}
}

// track returns a tag that refers to an image of another image stream. As in OpenShift 3.11, an
// application with an explicit name has its own image stream of that name.
func track(image *Image) imagev1.TagReference {
	return imagev1.TagReference{Name: image.Tag, From: image.tag(""), Annotations: map[string]string{importedFrom: image.Reference}}
}

// head returns an object's metadata with the generated-by annotation. The labels are the request's
// labels, or the app label if the request has none.
func (p *Plan) head(name string) metav1.ObjectMeta {
	labels := maps.Clone(p.Labels)
	if len(labels) == 0 {
		labels = map[string]string{"app": p.Parts[0].Name}
	}
	return metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{generatedBy: p.By}}
}

func typed(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

func (p *Plan) stream(name string) *imagev1.ImageStream {
	return &imagev1.ImageStream{TypeMeta: typed(imagev1.GroupVersion, "ImageStream"), ObjectMeta: p.head(name)}
}

// Tags returns the tags of an image stream that refer to an image in a registry, as separate
// objects.
func Tags(stream *imagev1.ImageStream) (tags []*imagev1.ImageStreamTag) {
	for _, tag := range stream.Spec.Tags {
		if tag.Annotations[importedFrom] == "" {
			continue
		}
		tags = append(tags, &imagev1.ImageStreamTag{
			TypeMeta: typed(imagev1.GroupVersion, "ImageStreamTag"), Tag: &tag,
			ObjectMeta: metav1.ObjectMeta{Name: stream.Name + ":" + tag.Name, Labels: stream.Labels, Annotations: stream.Annotations},
		})
	}
	return tags
}

func (p *Plan) buildConfig(part Part) *buildv1.BuildConfig {
	build := part.Build
	config := &buildv1.BuildConfig{TypeMeta: typed(buildv1.GroupVersion, "BuildConfig"), ObjectMeta: p.head(part.Name)}
	config.Spec.Source = build.source()
	if !build.Binary {
		webhook := func() *buildv1.WebHookTrigger { return &buildv1.WebHookTrigger{Secret: rand.Text()} }
		config.Spec.Triggers = []buildv1.BuildTriggerPolicy{
			{Type: buildv1.GitHubWebHookBuildTriggerType, GitHubWebHook: webhook()},
			{Type: buildv1.GenericWebHookBuildTriggerType, GenericWebHook: webhook()},
			{Type: buildv1.ConfigChangeBuildTriggerType},
		}
	}
	environment := p.BuildEnvironment
	switch build.Strategy {
	case PipelineStrategy:
		config.Spec.Strategy = buildv1.BuildStrategy{Type: buildv1.JenkinsPipelineBuildStrategyType, JenkinsPipelineStrategy: &buildv1.JenkinsPipelineBuildStrategy{Env: environment}}
		return config
	case DockerStrategy:
		config.Spec.Strategy = buildv1.BuildStrategy{Type: buildv1.DockerBuildStrategyType, DockerStrategy: &buildv1.DockerBuildStrategy{Env: environment}}
		if part.Image != nil {
			config.Spec.Strategy.DockerStrategy.From = part.Image.tag(p.Namespace)
		}
	default:
		config.Spec.Strategy = buildv1.BuildStrategy{Type: buildv1.SourceBuildStrategyType, SourceStrategy: &buildv1.SourceBuildStrategy{From: *part.Image.tag(p.Namespace), Env: environment}}
	}
	config.Spec.Output.To = p.output(part)
	p.Options.apply(config)
	if !build.Binary && part.Image != nil {
		config.Spec.Triggers = append(config.Spec.Triggers, buildv1.BuildTriggerPolicy{Type: buildv1.ImageChangeBuildTriggerType, ImageChange: &buildv1.ImageChangeTrigger{}})
	}
	return config
}

// source returns the source for the build's BuildConfig.
func (b *Build) source() buildv1.BuildSource {
	if b.Inline != "" {
		return buildv1.BuildSource{Type: buildv1.BuildSourceDockerfile, Dockerfile: &b.Inline}
	}
	if b.Binary {
		return buildv1.BuildSource{Type: buildv1.BuildSourceBinary, Binary: &buildv1.BinaryBuildSource{}}
	}
	return buildv1.BuildSource{
		Type: buildv1.BuildSourceGit, Git: &buildv1.GitBuildSource{URI: b.Source.URL, Ref: b.Source.Ref}, ContextDir: b.Source.ContextDir,
	}
}

func (p *Plan) deploymentConfig(pod []Part) *appsv1.DeploymentConfig {
	name := pod[0].Name
	head := p.head(name)
	selector := merged(head.Labels, map[string]string{"deploymentconfig": name})
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector, Annotations: maps.Clone(head.Annotations)}}
	triggers := appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	for _, part := range pod {
		container := corev1.Container{Name: part.Name, Image: part.Image.Reference, Ports: part.ports(), Env: p.Environment}
		from := part.Image.tag(p.Namespace)
		if part.Build == nil && len(part.Image.Command) > 0 {
			command, _ := json.Marshal(part.Image.Command) // strings can always be encoded
			template.Annotations[fmt.Sprintf(entrypoint, part.Name)] = string(command)
		}
		if part.Build != nil {
			container.Image = part.Name + ":latest"
			from = &corev1.ObjectReference{Kind: "ImageStreamTag", Name: container.Image}
		}
		for i, path := range part.Image.Volumes {
			volume := fmt.Sprintf("%s-volume-%d", part.Name, i+1)
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
		template.Spec.Containers = append(template.Spec.Containers, container)
		if from.Namespace == "" {
			from.Namespace = p.Namespace
		}
		triggers = append(triggers, appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
			Automatic: true, ContainerNames: []string{part.Name}, From: *from,
		}})
	}
	return &appsv1.DeploymentConfig{
		TypeMeta: typed(appsv1.GroupVersion, "DeploymentConfig"), ObjectMeta: head,
		Spec: appsv1.DeploymentConfigSpec{Replicas: 1, Test: p.AsTest, Selector: selector, Template: template, Triggers: triggers},
	}
}

// service returns a service that exposes all ports of a deployment config's containers.
func (p *Plan) service(dc *appsv1.DeploymentConfig) *corev1.Service {
	service := &corev1.Service{
		TypeMeta: typed(corev1.SchemeGroupVersion, "Service"), ObjectMeta: p.head(dc.Name), Spec: corev1.ServiceSpec{Selector: dc.Spec.Selector},
	}
	seen := map[string]bool{}
	for _, container := range dc.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			name := portName(port)
			if seen[name] {
				continue
			}
			seen[name] = true
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: strings.ReplaceAll(name, "/", "-"), Port: port.ContainerPort, Protocol: port.Protocol, TargetPort: intstr.FromInt32(port.ContainerPort),
			})
		}
	}
	return service
}

// portName returns the port number and protocol in the form 8080/tcp.
func portName(port corev1.ContainerPort) string {
	return fmt.Sprintf("%d/%s", port.ContainerPort, strings.ToLower(string(port.Protocol)))
}

func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, item := range all {
		maps.Copy(result, item)
	}
	return result
}
