package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// shownBuilds is the maximum number of builds that are listed, newest first.
const shownBuilds = 10

// buildConfig writes a build config, its triggers and its latest builds.
func buildConfig(p *page, c *buildv1.BuildConfig) error {
	p.metadata(c.ObjectMeta)
	latest := "Never built"
	if c.Status.LastVersion > 0 {
		latest = fmt.Sprint(c.Status.LastVersion)
	}
	p.field("Latest Version", latest)
	p.line("")
	common(p, c.Spec.CommonSpec)
	p.line("")
	p.field("Build Run Policy", c.Spec.RunPolicy)
	var kinds []string
	for _, trigger := range c.Spec.Triggers {
		switch trigger.Type {
		case buildv1.ImageChangeBuildTriggerType:
			kinds = append(kinds, "ImageChange")
		case buildv1.ConfigChangeBuildTriggerType:
			kinds = append(kinds, "Config")
		}
	}
	p.field("Triggered by", strings.Join(kinds, ", "))
	webhooks(p, c)
	p.line("Builds History Limit:")
	p.field("  Successful", optional(c.Spec.SuccessfulBuildsHistoryLimit))
	p.field("  Failed", optional(c.Spec.FailedBuildsHistoryLimit))
	return builds(p, c)
}

// webhooks writes the URLs that start a build. They contain the placeholder <secret> instead of the
// secret.
func webhooks(p *page, c *buildv1.BuildConfig) {
	for _, trigger := range c.Spec.Triggers {
		for name, hook := range map[string]*buildv1.WebHookTrigger{
			"generic": trigger.GenericWebHook, "github": trigger.GitHubWebHook, "gitlab": trigger.GitLabWebHook, "bitbucket": trigger.BitbucketWebHook,
		} {
			if hook == nil {
				continue
			}
			p.line("Webhook %s:", map[string]string{"generic": "Generic", "github": "GitHub", "gitlab": "GitLab", "bitbucket": "Bitbucket"}[name])
			p.field("  URL", fmt.Sprintf("%s/apis/%s/namespaces/%s/buildconfigs/%s/webhooks/<secret>/%s", p.server, buildv1.GroupVersion, c.Namespace, c.Name, name))
			if name == "generic" {
				p.field("  AllowEnv", hook.AllowEnv)
			}
		}
	}
}

// common writes the properties that builds and build configs share.
func common(p *page, c buildv1.CommonSpec) {
	p.field("Strategy", strategyName(c.Strategy))
	source(p, c)
	strategy(p, c.Strategy)
	if to := c.Output.To; to != nil {
		p.field("Output to", reference(to))
	}
	if c.Output.PushSecret != nil {
		p.field("Push Secret", c.Output.PushSecret.Name)
	}
	if hook := c.PostCommit; hook.Script != "" || len(hook.Command)+len(hook.Args) > 0 {
		p.field("Post Commit Hook", strings.Join(append(slices.Concat(hook.Command, hook.Args), hook.Script), " "))
	}
	if c.CompletionDeadlineSeconds != nil {
		p.field("Fail Build After", time.Duration(*c.CompletionDeadlineSeconds)*time.Second)
	}
}

func source(p *page, c buildv1.CommonSpec) {
	if git := c.Source.Git; git != nil {
		p.field("URL", git.URI)
		if git.Ref != "" {
			p.field("Ref", git.Ref)
		}
	}
	if c.Revision != nil && c.Revision.Git != nil {
		p.field("Commit", fmt.Sprintf("%.7s (%s)", c.Revision.Git.Commit, c.Revision.Git.Message))
	}
	if c.Source.ContextDir != "" {
		p.field("ContextDir", c.Source.ContextDir)
	}
	if c.Source.Dockerfile != nil {
		p.line("Dockerfile:")
		for line := range strings.Lines(*c.Source.Dockerfile) {
			p.line("  %s", strings.TrimSuffix(line, "\n"))
		}
	}
	if c.Source.SourceSecret != nil {
		p.field("Source Secret", c.Source.SourceSecret.Name)
	}
	if c.Source.Binary != nil {
		p.field("Binary", cmp.Or(c.Source.Binary.AsFile, "provided on build"))
	}
	for i := range c.Source.Images {
		p.field("Image Source", reference(&c.Source.Images[i].From))
	}
}

// strategyName returns a strategy's type, as OpenShift 3's client prints it.
func strategyName(s buildv1.BuildStrategy) string {
	return cmp.Or(string(s.Type), none)
}

func strategy(p *page, s buildv1.BuildStrategy) {
	var (
		from *corev1.ObjectReference
		env  []corev1.EnvVar
	)
	switch {
	case s.SourceStrategy != nil:
		from, env = &s.SourceStrategy.From, s.SourceStrategy.Env
		if s.SourceStrategy.Incremental != nil && *s.SourceStrategy.Incremental {
			p.field("Incremental Build", "yes")
		}
		pulls(p, s.SourceStrategy.PullSecret, s.SourceStrategy.ForcePull)
	case s.DockerStrategy != nil:
		from, env = s.DockerStrategy.From, s.DockerStrategy.Env
		if s.DockerStrategy.NoCache {
			p.field("No Cache", true)
		}
		if s.DockerStrategy.DockerfilePath != "" {
			p.field("Dockerfile Path", s.DockerStrategy.DockerfilePath)
		}
		pulls(p, s.DockerStrategy.PullSecret, s.DockerStrategy.ForcePull)
	case s.CustomStrategy != nil:
		from, env = &s.CustomStrategy.From, s.CustomStrategy.Env
		if s.CustomStrategy.ExposeDockerSocket {
			p.field("Expose Docker Socket", "yes")
		}
		pulls(p, s.CustomStrategy.PullSecret, s.CustomStrategy.ForcePull)
	case s.JenkinsPipelineStrategy != nil:
		env = s.JenkinsPipelineStrategy.Env
		p.field("Jenkinsfile path", s.JenkinsPipelineStrategy.JenkinsfilePath)
	}
	if from != nil {
		p.field("From Image", reference(from))
	}
	for i, variable := range env {
		if i == 0 {
			p.field("Environment", variable.Name+"="+variable.Value)
			continue
		}
		p.line("\t%s=%s", variable.Name, variable.Value)
	}
}

// pulls writes the pull secret and, if force is set, that the image is always pulled.
func pulls(p *page, secret *corev1.LocalObjectReference, force bool) {
	if secret != nil {
		p.field("Pull Secret Name", secret.Name)
	}
	if force {
		p.field("Force Pull", "yes")
	}
}

// reference returns an object's kind and name, and its project if the reference contains one.
func reference(r *corev1.ObjectReference) string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.Kind + " " + name
}

// builds writes a table of a build config's latest builds.
func builds(p *page, c *buildv1.BuildConfig) error {
	builds, err := objects.List[buildv1.Build](p.ctx, p.client, buildv1.GroupVersion.WithResource("builds"), c.Namespace,
		metav1.ListOptions{LabelSelector: labels.Set{buildv1.BuildConfigLabel: c.Name}.String()})
	if err != nil || len(builds) == 0 {
		return err
	}
	slices.SortFunc(builds, func(a, b buildv1.Build) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	p.line("\nBuild\tStatus\tDuration\tCreation Time")
	for _, build := range builds[:min(len(builds), shownBuilds)] {
		p.line("%s\t%s\t%s\t%s", build.Name, strings.ToLower(string(build.Status.Phase)), p.duration(build), build.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 -0700 MST"))
	}
	return nil
}

// duration returns how long a finished build took. For any other build, it returns how long the
// build has been waiting or running.
func (p *page) duration(b buildv1.Build) string {
	switch {
	case b.Status.StartTimestamp == nil:
		return "waiting for " + p.now.Sub(b.CreationTimestamp.Time).Round(time.Second).String()
	case b.Status.CompletionTimestamp == nil:
		return "running for " + p.now.Sub(b.Status.StartTimestamp.Time).Round(time.Second).String()
	}
	return b.Status.CompletionTimestamp.Sub(b.Status.StartTimestamp.Time).Round(time.Second).String()
}

// tests writes the test results of a pipeline build, if any.
func tests(p *page, results *buildpod.TestResults) {
	if results == nil {
		return
	}
	p.field("Tests", fmt.Sprintf("%d total, %d failed, %d skipped", results.Total, results.Failed, results.Skipped))
	for _, failure := range results.Failures {
		p.line("  %s:\t%s", singleLine(strings.Trim(failure.Suite+"."+failure.Name, ".")), singleLine(failure.Message))
	}
	if more := results.Failed - len(results.Failures); more > 0 {
		p.line("  and %d more", more)
	}
}

// singleLine replaces line breaks and tabs in a test's text with spaces, because they could be used
// to forge other fields.
func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// build writes one build.
func build(p *page, b *buildv1.Build) error {
	metadata := b.ObjectMeta.DeepCopy()
	delete(metadata.Annotations, buildpod.TestResultsAnnotation)
	p.metadata(*metadata)
	p.line("")
	status := string(b.Status.Phase)
	if b.Status.Message != "" {
		status += " (" + b.Status.Message + ")"
	}
	p.field("Status", status)
	if b.Status.StartTimestamp != nil {
		p.field("Started", b.Status.StartTimestamp.UTC().Format(time.RFC1123))
	}
	p.field("Duration", p.duration(*b))
	for _, stage := range b.Status.Stages {
		p.line("  %s:\t%dms", stage.Name, stage.DurationMilliseconds)
	}
	tests(p, buildpod.ReadTestResults(b.Annotations))
	p.line("")
	if b.Status.Config != nil {
		p.field("Build Config", b.Status.Config.Name)
	}
	p.field("Build Pod", cmp.Or(b.Annotations[buildv1.BuildPodNameAnnotation], b.Name+"-build"))
	p.line("")
	common(p, b.Spec.CommonSpec)
	if digest := b.Status.Output.To; digest != nil {
		p.field("Image Digest", digest.ImageDigest)
	}
	var causes []string
	for _, cause := range b.Spec.TriggeredBy {
		causes = append(causes, cause.Message)
	}
	p.lines("Build trigger cause", causes)
	if b.Status.LogSnippet != "" {
		p.line("Log Tail:")
		for line := range strings.Lines(b.Status.LogSnippet) {
			p.line("  %s", strings.TrimSuffix(line, "\n"))
		}
	}
	return nil
}
