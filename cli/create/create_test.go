package create

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestCreate(t *testing.T) {
	factory := objectstest.NewServer(t, nil).Factory(t)
	for _, test := range []struct {
		name    string
		command func(util.Factory, genericiooptions.IOStreams) *cobra.Command
		args    []string
		// print is a JSONPath template for the object, and want is the template's output.
		print, want string
		failure     string // part of the message
	}{
		{
			name: "quota", command: NewClusterQuota, args: []string{"bob", "--project-label-selector=team=a", `--project-annotation-selector="owner=x,y"`, "--hard=pods=10,secrets=5"},
			print: "{.spec}", want: `{"quota":{"hard":{"pods":"10","secrets":"5"}},"selector":{"annotations":{"owner":"x,y"},"labels":{"matchLabels":{"team":"a"}}}}`,
		},
		{name: "quota without selector", command: NewClusterQuota, args: []string{"bob", "--hard=pods=1"}, failure: "select the projects"},
		{name: "quota without quantity", command: NewClusterQuota, args: []string{"bob", "--project-label-selector=a=b", "--hard=pods"}, failure: `parse --hard "pods"`},

		{name: "stream", command: NewStream, args: []string{"mysql"}, print: "{.kind} {.metadata.namespace}/{.metadata.name} {.spec}", want: "ImageStream shop/mysql "},
		{name: "stream with lookup", command: NewStream, args: []string{"mysql", "--lookup-local"}, print: "{.spec.lookupPolicy.local}", want: "true"},

		{name: "empty tag", command: NewStreamTag, args: []string{"a:1"}, print: "{.tag.from}{.tag.referencePolicy.type}", want: "Source"},
		{
			name: "tag of another project's tag", command: NewStreamTag, args: []string{"a:1", "--from=other/b:2", "--reference-policy=Local"},
			print: "{.tag.from} {.tag.referencePolicy.type}", want: `{"kind":"ImageStreamTag","name":"b:2","namespace":"other"} Local`,
		},
		{name: "tag of an image", command: NewStreamTag, args: []string{"a:1", "--from=b@sha256:1"}, print: "{.tag.from}", want: `{"kind":"ImageStreamImage","name":"b@sha256:1"}`},
		{
			name: "scheduled tag", command: NewStreamTag, args: []string{"a:1", "--from-image=r/b:2", "--scheduled", "--insecure", "-A", "note=1,2"},
			print: "{.tag.from} {.tag.importPolicy} {.tag.annotations}", want: `{"kind":"DockerImage","name":"r/b:2"} {"insecure":true,"scheduled":true} {"note":"1,2"}`,
		},
		{name: "tag without stream", command: NewStreamTag, args: []string{":1"}, failure: "<stream_name>:<tag>"},
		{name: "tag of two sources", command: NewStreamTag, args: []string{"a:1", "--from=b:1", "--from-image=c"}, failure: "may not be used together"},
		{name: "tag with a wrong policy", command: NewStreamTag, args: []string{"a:1", "--reference-policy=far"}, failure: "must be source or local"},
		{name: "tag with a wrong annotation", command: NewStreamTag, args: []string{"a:1", "-A", "note"}, failure: "must be of the form key=value"},

		{
			name: "deployment config", command: NewConfig, args: []string{"web", "--image=nginx", "--", "-g", "daemon off;"},
			print: "{.spec.selector} {.spec.template.spec.containers}", want: `{"deployment-config.name":"web"} [{"args":["-g","daemon off;"],"image":"nginx","name":"default-container"}]`,
		},
		{name: "deployment config without image", command: NewConfig, args: []string{"web"}, failure: "--image"},

		{name: "user", command: NewUser, args: []string{"ann", "--full-name=Ann B"}, print: "{.metadata.name}{.metadata.namespace} {.fullName}", want: "ann Ann B"},
		{name: "identity", command: NewIdentity, args: []string{"ldap:cn:ann"}, print: "{.providerName} {.providerUserName}", want: "ldap cn:ann"},
		{name: "identity without provider", command: NewIdentity, args: []string{"ann"}, failure: "<PROVIDER_NAME>:<PROVIDER_USER_NAME>"},
		{name: "mapping", command: NewMapping, args: []string{"ldap:ann", "ann"}, print: "{.identity.name} {.user.name}", want: "ldap:ann ann"},

		{
			name: "edge route", command: NewRoute, args: []string{"edge", "--service=svc/web", "--port=8080", "--path=/a", "--insecure-policy=Redirect"},
			print: "{.metadata.name} {.spec}",
			want:  `web {"path":"/a","port":{"targetPort":8080},"tls":{"insecureEdgeTerminationPolicy":"Redirect","termination":"edge"},"to":{"kind":"Service","name":"web"}}`,
		},
		{
			name: "passthrough route with a named port", command: NewRoute, args: []string{"passthrough", "db", "--service=web", "--port=https", "--hostname=db.example.com"},
			print: "{.metadata.name} {.spec.host} {.spec.port.targetPort} {.spec.tls.termination}", want: "db db.example.com https passthrough",
		},
		{name: "reencrypt route without service", command: NewRoute, args: []string{"reencrypt", "web"}, failure: "--service"},
		{name: "route with a missing certificate", command: NewRoute, args: []string{"edge", "--service=web", "--cert=testdata/missing.pem"}, failure: "read --cert: open testdata/missing.pem"},
		{name: "passthrough route with a certificate", command: NewRoute, args: []string{"passthrough", "--service=web", "--cert=x"}, failure: "unknown flag: --cert"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"--dry-run=client", "-o", "jsonpath=" + test.print}, test.args...)
			if sub := test.args[0]; sub == "edge" || sub == "passthrough" || sub == "reencrypt" {
				args = append([]string{sub, "--dry-run=client", "-o", "jsonpath=" + test.print}, test.args[1:]...)
			}
			objectstest.Check(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return test.command(factory, streams)
			}, test.want, test.failure, args...)
		})
	}
}

func TestCreatePrintsAddressOfRoute(t *testing.T) {
	server := objectstest.NewServer(t, nil)
	out, errOut, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
		return NewRoute(server.Factory(t), streams)
	}, "edge", "--service=web", "--hostname=www.example.com")
	if failure != "" || out != "route.route.openshift.io/web created\n" || errOut != "https://www.example.com\n" {
		t.Errorf("the command prints %q and %q, and fails with %q", out, errOut, failure)
	}
	if writes := server.Writes(); len(writes) != 1 || !strings.HasPrefix(writes[0], "POST /apis/route.openshift.io/v1/namespaces/shop/routes ") {
		t.Errorf("the command sends %v", writes)
	}
}
