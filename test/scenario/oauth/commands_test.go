package oauth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// step is a command with the strings that must occur in its output. If fails is set, the command
// must fail, and the strings must occur in its error output. lacks contains strings that must not
// occur in the output.
type step struct {
	command string
	want    []string
	lacks   []string
	fails   bool
}

// walk runs the steps in order. It replaces FILE in a command with the path of a file that contains
// content.
func walk(t *testing.T, run func(args ...string) kit.Result, content string, steps []step) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		got := run(strings.Fields(strings.ReplaceAll(s.command, "FILE", file))...)
		text := got.Stdout
		if s.fails {
			text = got.Stderr
		}
		if (got.Code != 0) != s.fails {
			t.Fatalf("oc %s: exit code %d\n%s%s", s.command, got.Code, got.Stdout, got.Stderr)
		}
		for _, want := range s.want {
			if !strings.Contains(text, want) {
				t.Errorf("oc %s lacks %q:\n%s", s.command, want, text)
			}
		}
		for _, lacks := range s.lacks {
			if strings.Contains(text, lacks) {
				t.Errorf("oc %s has %q:\n%s", s.command, lacks, text)
			}
		}
	}
}

const walkers = `
apiVersion: v1
kind: Pod
metadata: {name: walker}
spec: {containers: [{name: a, image: localhost/a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: intruder}
spec: {containers: [{name: a, image: localhost/a, securityContext: {privileged: true}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: crew}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: localhost/a}]}}}
`

func TestUserWorksInProject(t *testing.T) {
	s := at(t, kit.Shared(t))
	oc := s.client()
	oc.oc("login", s.url, "-u", "developer", "-p", s.DeveloperPassword())
	t.Cleanup(func() { s.OC("delete", "namespace", "walk", "stroll", "robots", "--ignore-not-found", "--wait=false") })
	walk(t, func(args ...string) kit.Result { return oc.try(nil, args...) }, walkers, []step{
		{command: "new-project stroll --skip-config-write", want: []string{`Project "stroll" created`}},
		{command: "new-project walk --display-name=Walk --description=Around", want: []string{`Now using project "walk" on server "` + s.url + `".`}},
		{command: "new-project walk", fails: true, want: []string{"already exists"}},
		{command: "projects", want: []string{"* walk - Walk", "  stroll"}},
		{command: "projects -q", want: []string{"stroll\n", "walk\n"}},
		{command: "project stroll", want: []string{`Now using project "stroll"`}},
		{command: "project walk", want: []string{`Now using project "walk"`}},
		{command: "project walk", want: []string{`Already on project "walk"`}},
		{command: "project", want: []string{`Using project "walk" on server "` + s.url + `".`}},
		{command: "project kube-system", fails: true, want: []string{"you are not a member of project"}},
		{command: "status", want: []string{"In project Walk (walk) on server " + s.url, "You have no services, deployment configs, or build configs."}},
		{command: "status -n kube-system", fails: true, want: []string{"you are not a member of project"}},
		{command: "types", fails: true}, // 3.11 returns the same exit code
		{command: "version", want: []string{"oc ", "kubernetes v1.", "Server " + s.url, "openshift v3.11.0"}},
		{command: "describe project walk", want: []string{"Display Name:", "Around", "Resource limits:"}},

		{command: "policy can-i create dc", want: []string{"yes\n"}},
		{command: "policy can-i list nodes", want: []string{"no\n"}},
		{command: "policy can-i -q list nodes", fails: true, lacks: []string{"no"}},
		{command: "policy can-i create pods --scopes=user:info", want: []string{"no"}},
		{command: "policy can-i --list --loglevel=0", want: []string{"VERBS", "NON-RESOURCE URLS", "[projectrequests]", "deploymentconfigs"}},
		{command: "policy can-i --list --scopes=user:info", lacks: []string{"deploymentconfigs"}},
		{command: "policy add-role-to-user view alice", want: []string{`role "view" added: "alice"`}},
		{command: "policy who-can get pods", want: []string{"Namespace: walk", "alice", "system:cluster-admins"}},
		{command: "policy remove-role-from-user view alice", want: []string{"removed"}},
		{command: "policy who-can get pods", lacks: []string{"alice"}},
		{command: "policy add-role-to-group edit west", want: []string{"added"}},
		{command: "policy remove-group west", want: []string{"from groups [west] in project walk"}},
		{command: "policy remove-user nobody", want: []string{"Users [nobody] were not bound to roles in project walk."}},
		{command: "policy add-role-to-group view system:serviceaccounts", want: []string{"added"}},
		{command: "create role podview --verb=get --resource=pods", want: []string{"created"}},
		{command: "adm policy add-role-to-user podview user2 --role-namespace=walk -n walk", want: []string{"added"}},
		{command: "get rolebinding.rbac.authorization.k8s.io podview -o jsonpath={.roleRef.kind},{.subjects[0].name}", want: []string{"Role,user2"}},
		{command: "policy scc-subject-review -f FILE", want: []string{"RESOURCE", "ALLOWED BY", "Pod/walker", "Deployment/crew", "restricted", "Pod/intruder      <none>"}},
		{command: "policy scc-subject-review -z default -f FILE --no-headers", want: []string{"Pod/walker"}, lacks: []string{"RESOURCE"}},
		{command: "policy scc-subject-review -z default -u alice -f FILE", fails: true, want: []string{"--user and --serviceaccount are mutually exclusive"}},
		{command: "policy scc-review -z default,builder -f FILE", want: []string{"SERVICE ACCOUNT"}, lacks: []string{"builder"}},
		{command: "policy scc-review -z nobody -f FILE", fails: true, want: []string{`serviceaccount "nobody" not found`}},
	})
	accounts(t, s, oc)
	application(t, s, oc)
}

// accounts tests the commands for service accounts, and logs in with the tokens that they print.
func accounts(t *testing.T, s *server, oc *client) {
	t.Helper()
	oc.oc("create", "sa", "robot")
	oc.oc("policy", "add-role-to-user", "view", "-z", "robot")
	for _, command := range []string{"serviceaccounts get-token robot", "sa new-token robot --labels=made=here"} {
		token := oc.oc(strings.Fields(command)...)
		robot := s.client()
		robot.oc("login", s.url, "--token="+token)
		if got := robot.oc("whoami"); got != "system:serviceaccount:walk:robot\n" {
			t.Errorf("the user of the token from oc %s is %s", command, got)
		}
	}
	if got := oc.oc("get", "secrets", "-l", "made=here", "-o", "name"); !strings.HasPrefix(got, "secret/robot-token-") {
		t.Errorf("the new token's secret is %q", got)
	}
	robot := s.client()
	if err := os.WriteFile(robot.file, []byte(oc.oc("sa", "create-kubeconfig", "robot")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := robot.oc("get", "pods", "-o", "name"); got != "" {
		t.Errorf("the user of the kubeconfig is %q", got)
	}
	s.OC("adm", "policy", "add-cluster-role-to-user", "self-provisioner", "system:serviceaccount:walk:robot")
	walker := s.client()
	walker.oc("login", s.url, "--token="+oc.oc("sa", "get-token", "robot"))
	walker.oc("new-project", "robots")
	s.OC("adm", "policy", "remove-cluster-role-from-user", "self-provisioner", "system:serviceaccount:walk:robot")
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/^metadata:/metadata:\\n  labels: {edited: \"yes\"}/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := oc.try([]string{"EDITOR=" + editor}, "edit", "sa/robot"); got.Code != 0 || !strings.Contains(got.Stdout, "serviceaccount/robot edited") {
		t.Errorf("oc edit: %d, %s%s", got.Code, got.Stdout, got.Stderr)
	}
	walk(t, func(args ...string) kit.Result { return oc.try(nil, args...) }, "", []step{
		{command: "get sa -l edited=yes -o name", want: []string{"serviceaccount/robot"}},
		{command: "sa get-token nobody", fails: true, want: []string{`"nobody" not found`}},
		{command: "describe sa robot", want: []string{"Name:", "robot"}},
	})
}

// application tests the commands that create, describe and export an application's objects.
func application(t *testing.T, s *server, oc *client) {
	t.Helper()
	const old = "{apiVersion: v1, kind: Route, metadata: {name: old}, spec: {host: old.example.com, to: {kind: Service, name: front}}}"
	walk(t, func(args ...string) kit.Result { return oc.try(nil, args...) }, old, []step{
		{command: "create imagestream app --lookup-local", want: []string{"imagestream.image.openshift.io/app created"}},
		{command: "create istag app:v1 --from-image=registry.example.com/app:v1 --reference", want: []string{"imagestreamtag.image.openshift.io/app:v1 created"}},
		{command: "create istag app", fails: true, want: []string{"must be of the form <stream_name>:<tag>"}},
		{command: "create deploymentconfig front --image=localhost/front --dry-run=client -o jsonpath={.spec.template.spec.containers[0].args} -- sleep 1", want: []string{`["sleep","1"]`}},
		{command: "create dc front --image=localhost/front", want: []string{"deploymentconfig.apps.openshift.io/front created"}},
		{command: "create service clusterip front --tcp=80:8080", want: []string{"created"}},
		{command: "create route edge --service=front --hostname=front.example.com --port=80-8080 --insecure-policy=Redirect", want: []string{"route.route.openshift.io/front created"}},
		{command: "create route reencrypt --hostname=front.example.com", fails: true, want: []string{"--service"}},
		{command: "create -f FILE", want: []string{"route.route.openshift.io/old created"}},
		{command: "convert -f FILE", want: []string{"apiVersion: route.openshift.io/v1"}},
		{command: "get all", want: []string{"route.route.openshift.io/front", "deploymentconfig.apps.openshift.io/front", "imagestream.image.openshift.io/app", "service/front"}},
		{command: "status", want: []string{"https://front.example.com (redirects)", "to pod port 80-8080 (svc/front)", "dc/front deploys localhost/front", "identified, use 'oc status --suggest' to see details."}},
		{command: "status --suggest", want: []string{"dc/front has no readiness probe"}},
		{command: "status -o dot", want: []string{`digraph "walk" {`, `"route/front" -> "svc/front"`}},
		{command: "status --all-namespaces", want: []string{"Showing all projects"}},
		{command: "describe is/app", want: []string{"Image Lookup:", "local=true", "reference to registry.example.com/app:v1"}},
		{command: "describe dc/front", want: []string{"Latest Version:", "Triggers:", "Template:"}},
		{command: "describe route/front", want: []string{"Requested Host:", "front.example.com", "TLS Termination:", "edge", "Weight:", "100 (100%)"}},
		{command: "export svc/front", want: []string{"kind: Service", "port: 80"}, lacks: []string{"clusterIP", "uid", "namespace", "status"}},
		{command: "export svc/front --exact", want: []string{"clusterIP", "namespace: walk"}, lacks: []string{"uid"}},
		{command: "export svc/front --raw", want: []string{"uid"}},
		{command: "export svc,dc,route --as-template=everything", want: []string{"kind: Template", "name: everything", "kind: DeploymentConfig", "host: old.example.com"}},
		{command: "export svc -l no=such", fails: true, want: []string{"nothing to export"}},
		{command: "explain dc.spec.triggers", want: []string{"DeploymentTriggerPolic"}},
		{command: "api-resources --api-group=route.openshift.io -o name", want: []string{"routes.route.openshift.io"}},
		{command: "describe AppliedClusterResourceQuota", lacks: []string{"error"}},
		{command: "delete project stroll", want: []string{"deleted"}},
	})
}

// sccAdmin is the example in section 15.4 of the Cluster Administration guide.
const sccAdmin = `
apiVersion: v1
kind: SecurityContextConstraints
metadata: {name: scc-admin}
allowPrivilegedContainer: true
runAsUser: {type: RunAsAny}
seLinuxContext: {type: RunAsAny}
fsGroup: {type: RunAsAny}
supplementalGroups: {type: RunAsAny}
users: [my-admin-user]
groups: [my-admin-group]
`

func TestAdministratorCommandsKeepDefaults(t *testing.T) {
	s := at(t, kit.Shared(t))
	run := func(args ...string) kit.Result { return s.Slipway(append([]string{"oc"}, args...)...) }
	// Create a user and a token for the commands to describe.
	s.client().oc("login", s.url, "-u", "developer", "-p", s.DeveloperPassword())
	policy, template := filepath.Join(t.TempDir(), "policy.json"), filepath.Join(t.TempDir(), "template.yaml")
	t.Cleanup(func() {
		s.OC("delete", "clusterquota/limit-developer", "template/project-request", "-n", "default", "--ignore-not-found")
		s.OC("delete", "namespace", "selected", "impersonated", "--ignore-not-found", "--wait=false")
	})
	walk(t, run, sccAdmin, []step{
		{command: "adm policy add-scc-to-user hostaccess bob", want: []string{`scc "hostaccess" added to: ["bob"]`}},
		{command: "adm policy reconcile-sccs", want: []string{}, lacks: []string{"hostaccess"}},
		{command: `patch scc hostaccess --type=merge -p {"allowHostPID":false,"priority":3}`},
		{command: "adm policy reconcile-sccs", want: []string{"kind: List", "name: hostaccess", "allowHostPID: true", "- bob"}},
		{command: "get scc hostaccess -o jsonpath={.allowHostPID}", want: []string{"false"}},
		{command: "adm policy reconcile-sccs --additive-only=true --confirm", want: []string{"securitycontextconstraints/hostaccess"}},
		{command: "get scc hostaccess -o jsonpath={.allowHostPID},{.priority},{.users}", want: []string{`true,3,["bob"]`}},
		{command: "adm policy reconcile-sccs --additive-only=false --confirm", want: []string{"securitycontextconstraints/hostaccess"}},
		{command: "get scc hostaccess -o jsonpath={.allowHostPID},{.priority},{.users}", lacks: []string{"3", "bob"}},
		{command: "get scc", want: []string{"PRIV ", "CAPS ", "SELINUX ", "RUNASUSER ", "FSGROUP ", "SUPGROUP ", "PRIORITY ", "READONLYROOTFS ", "VOLUMES",
			"anyuid ", "hostaccess ", "hostmount-anyuid ", "hostnetwork ", "nonroot ", "privileged ", "restricted "}},
		{command: "export scc/privileged", want: []string{"kind: SecurityContextConstraints", "allowPrivilegedContainer: true"}, lacks: []string{"uid:", "resourceVersion"}},
		{command: "create -f FILE", want: []string{"securitycontextconstraints.security.openshift.io/scc-admin created"}},
		{command: "describe scc scc-admin", want: []string{"Allow Privileged:", "my-admin-user"}},
		{command: "delete scc scc-admin", want: []string{"deleted"}},
		{command: "describe scc restricted", want: []string{"Run As User Strategy: MustRunAsRange", "Required Drop Capabilities:"}},

		{command: `patch clusterrole.rbac basic-user --type=merge -p {"rules":[]}`},
		{command: "annotate clusterrole.rbac basic-user --overwrite rbac.authorization.kubernetes.io/autoupdate=false"},
		{command: "adm policy reconcile-cluster-roles", lacks: []string{"name: basic-user"}},
		{command: "annotate clusterrole.rbac basic-user --overwrite rbac.authorization.kubernetes.io/autoupdate=true"},
		{command: "adm policy reconcile-cluster-roles", want: []string{"name: basic-user", "projectrequests"}},
		{command: "adm policy reconcile-cluster-roles basic-user --confirm", want: []string{"clusterrole/basic-user\n"}},
		{command: "adm policy reconcile-cluster-roles basic-user", lacks: []string{"basic-user"}},
		{command: "adm policy reconcile-cluster-roles nonsense", fails: true, want: []string{"it is not a default role"}},
		{command: "delete clusterrolebinding.rbac basic-users"},
		{command: "adm policy reconcile-cluster-role-bindings basic-user --confirm", want: []string{"clusterrolebinding/basic-users\n"}},
		{command: "describe clusterrolebinding.rbac basic-users", want: []string{"system:authenticated"}},
		{command: "describe clusterrolebinding.rbac self-provisioners", want: []string{"self-provisioner", "system:authenticated:oauth"}},
		{command: `patch clusterrolebinding.rbac self-provisioners -p {"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"}}}`},
		{command: "describe clusterrole.rbac basic-user", want: []string{"openshift.io/description: A user that can get basic information", "PolicyRule:"}},
		{command: "create clusterrolebinding walk-sudo --clusterrole=sudoer --user=alice", want: []string{"created"}},
		{command: "delete clusterrolebinding walk-sudo"},
		{command: "adm policy add-cluster-role-to-user system:sdn-reader system:serviceaccount:default:router", want: []string{`cluster role "system:sdn-reader" added`}},
		{command: "adm policy remove-cluster-role-from-user system:sdn-reader system:serviceaccount:default:router", want: []string{"removed"}},
		{command: "adm policy add-cluster-role-to-group view west", want: []string{"added"}},
		{command: "adm policy remove-cluster-role-from-group view west", want: []string{"removed"}},
		{command: "adm new-project selected --node-selector=region=east --admin=alice", want: []string{"Created project selected"}},
		{command: "get namespace selected -o jsonpath={.metadata.annotations}", want: []string{`"openshift.io/node-selector":"region=east"`}},
		{command: `patch namespace selected -p {"metadata":{"annotations":{"openshift.io/node-selector":""}}}`, want: []string{"patched"}},
		{command: "new-project impersonated --skip-config-write --as=alice --as-group=system:authenticated --as-group=system:authenticated:oauth"},
		{command: "get rolebinding admin -n impersonated -o jsonpath={.subjects[0].name}", want: []string{"alice"}},
		{command: "create user passing"}, {command: "create identity htpasswd_auth:passing"},
		{command: "get user,identity", want: []string{"user.user.openshift.io/passing", "identity.user.openshift.io/htpasswd_auth:passing"}},
		{command: "delete user passing", want: []string{"deleted"}}, {command: "delete identity htpasswd_auth:passing", want: []string{"deleted"}},
		{command: "describe clusterrole.authorization.openshift.io basic-user", want: []string{"Non-Resource URLs", "API Groups"}},

		{command: "adm create-bootstrap-policy-file --filename=" + policy, want: []string{policy}},
		{command: `patch clusterrole.rbac self-access-reviewer --type=merge -p {"rules":[]}`},
		{command: "auth reconcile -f " + policy, want: []string{"clusterrole.rbac.authorization.k8s.io/self-access-reviewer reconciled"}},
		{command: "get clusterrole.rbac self-access-reviewer -o jsonpath={.rules}", want: []string{"selfsubjectrulesreviews"}},

		{command: "create clusterquota limit-developer --project-annotation-selector openshift.io/requester=developer --hard pods=10 --hard secrets=20",
			want: []string{"clusterresourcequota.quota.openshift.io/limit-developer created"}},
		{command: "create clusterresourcequota nothing --hard=pods=1", fails: true, want: []string{"--project-label-selector"}},
		{command: "describe clusterquota limit-developer", want: []string{"AnnotationSelector:", "map[openshift.io/requester:developer]", "secrets"}},
		{command: "describe oauthclient openshift-challenging-client", want: []string{"Redirect URIs:"}, lacks: []string{"Secret:  <set"}},
		{command: "describe oauthaccesstokens", want: []string{"Client Name:", "Expires In:"}},
		{command: "describe user developer", want: []string{"Identities:"}, lacks: []string{"Error"}},
		{command: "adm create-login-template", want: []string{"<html"}},
	})
	if err := os.WriteFile(template, []byte(s.OC("adm", "create-bootstrap-project-template", "-o", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	walk(t, run, "", []step{
		{command: "create -n default -f " + template, want: []string{"template.template.openshift.io/project-request created"}},
		{command: "describe template project-request -n default", want: []string{"PROJECT_ADMIN_USER", "RoleBinding.rbac.authorization.k8s.io", "Project.project.openshift.io"}},
	})
}

// TestOldClientsFindEveryGroup requests resources at OpenShift 3.5's paths. These resources now
// belong to API groups.
func TestOldClientsFindEveryGroup(t *testing.T) {
	s := at(t, kit.Shared(t))
	for path, kind := range map[string]string{
		"/oapi/v1/projects/default":                      "Project",
		"/oapi/v1/securitycontextconstraints/restricted": "SecurityContextConstraints",
		"/api/v1/securitycontextconstraints/restricted":  "SecurityContextConstraints",
		"/oapi/v1/clusterroles/basic-user":               "ClusterRole",
		"/oapi/v1/clusterrolebindings/basic-users":       "ClusterRoleBinding",
		"/oapi/v1/namespaces/default/rolebindings":       "RoleBindingList",
		"/oapi/v1/namespaces/default/deploymentconfigs":  "DeploymentConfigList",
		"/oapi/v1/users": "UserList",
		"/oapi/v1/oauthclients/openshift-challenging-client": "OAuthClient",
	} {
		var meta struct{ APIVersion, Kind string }
		if err := json.Unmarshal([]byte(s.OC("get", "--raw", path)), &meta); err != nil {
			t.Fatal(err)
		}
		if meta.APIVersion != "v1" || meta.Kind != kind {
			t.Errorf("%s is %+v, want %s", path, meta, kind)
		}
	}
}
