package newapp

import (
	"fmt"
	"io"
	"strings"
)

// Describe prints each part and the objects to create for it, in the wording of OpenShift 3's
// client.
func (p *Plan) Describe(out io.Writer) {
	for _, part := range p.Parts {
		p.describeImage(out, part)
		if part.Build != nil {
			p.building(out, part)
		}
		if p.deployed(part) {
			p.deployment(out, part)
		}
		fmt.Fprintln(out)
	}
}

func (p *Plan) describeImage(out io.Writer, part Part) {
	image := part.Image
	switch {
	case image == nil && part.Build.Strategy != PipelineStrategy:
		return // the build has no base image, or its source is binary
	case image == nil:
		fmt.Fprintf(out, "--> Found a Jenkinsfile in %q\n\n", part.Build.Source.Name)
		return
	case image.Missing:
		fmt.Fprintf(out, "--> No image %q was found, it is expected to exist later\n\n", image.Name)
	case image.Stream == "":
		fmt.Fprintf(out, "--> Found Docker image %s for %q\n\n", image.short(), image.Name)
	default:
		fmt.Fprintf(out, "--> Found image %s in image stream %q under tag %q for %q\n\n", image.short(), image.Namespace+"/"+image.Stream, image.Tag, image.Name)
	}
	if title := image.Labels["io.k8s.display-name"]; title != "" {
		fmt.Fprintf(out, "    %s \n    %s \n    %s\n\n", title, strings.Repeat("-", len(title)), image.Labels["io.k8s.description"])
	}
	if tags := image.Labels["io.openshift.tags"]; tags != "" {
		fmt.Fprintf(out, "    Tags: %s\n\n", strings.ReplaceAll(tags, ",", ", "))
	}
	if image.Stream == "" {
		subject := "this image"
		if part.Build != nil {
			subject = "the source image"
		}
		fmt.Fprintf(out, "    * An image stream tag will be created as %q that will track %s\n", p.tracked(part)+":"+image.Tag, subject)
	}
}

func (p *Plan) building(out io.Writer, part Part) {
	build := part.Build
	kind := map[string]string{DockerStrategy: "Docker", SourceStrategy: "source", PipelineStrategy: "pipeline"}[build.Strategy]
	switch {
	case build.Inline != "":
		fmt.Fprintf(out, "    * A %s build using a predefined Dockerfile will be created\n", kind)
	case build.Binary:
		fmt.Fprintf(out, "    * A %s build using binary input will be created\n", kind)
	default:
		fmt.Fprintf(out, "    * A %s build using source code from %s will be created\n", kind, build.Source.URL)
	}
	switch to := p.output(part); {
	case build.Strategy == PipelineStrategy:
	case to == nil:
		fmt.Fprintf(out, "      * The resulting image will not be pushed\n")
	case to.Kind == "DockerImage":
		fmt.Fprintf(out, "      * The resulting image will be pushed with Docker to %q\n", to.Name)
	default:
		fmt.Fprintf(out, "      * The resulting image will be pushed to image stream tag %q\n", to.Name)
	}
	if build.Binary {
		fmt.Fprintf(out, "      * Use 'oc start-build %s --from-dir=DIR' to trigger a new build\n", part.Name)
		return
	}
	fmt.Fprintf(out, "      * Use 'oc start-build %s' to trigger a new build\n", part.Name)
}

func (p *Plan) deployment(out io.Writer, part Part) {
	name := part.Name
	for _, pod := range p.Pods() {
		if pod[0].Group == part.Group {
			name = pod[0].Name
		}
	}
	test := ""
	if p.AsTest {
		test = "test "
	}
	fmt.Fprintf(out, "    * This image will be %sdeployed in deployment config %q\n", test, name)
	var names []string
	for _, port := range part.ports() {
		names = append(names, portName(port))
	}
	switch len(names) {
	case 0:
		fmt.Fprintf(out, "    * The image does not expose any ports - if you want to load balance or send traffic to this component\n"+
			"      you will need to create a service with 'oc expose dc/%s --port=[port]' later\n", name)
	case 1:
		fmt.Fprintf(out, "    * Port %s will be load balanced by service %q\n", names[0], name)
	default:
		fmt.Fprintf(out, "    * Ports %s will be load balanced by service %q\n", strings.Join(names, ", "), name)
	}
	if len(names) > 0 {
		fmt.Fprintf(out, "      * Other containers can access this service through the hostname %q\n", name)
	}
	if len(part.Image.Volumes) > 0 {
		fmt.Fprintf(out, "    * This image declares volumes and will default to use non-persistent, host-local storage.\n"+
			"      You can add persistent volumes later by running 'oc set volume dc/%s --add ...'\n", name)
	}
	if user := part.Image.User; part.Build == nil && !part.Image.Missing && (user == "" || user == "root" || strings.HasPrefix(user, "0")) {
		fmt.Fprintf(out, "    * WARNING: Image %q runs as the 'root' user which may not be permitted by your cluster administrator\n", part.Image.Name)
	}
}
