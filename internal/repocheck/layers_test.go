package repocheck

// vocabulary assigns a meaning to every folder with Go code, from the top of the tree down. Columns
// are separated by two or more spaces. A layer can have several lines. "x/*" makes each folder in x
// a separate unit, and "x" is a single unit that includes everything below it. A unit may import
// units in the layers that its line lists. It must not import another unit in its own layer unless
// its line lists that layer.
const vocabulary = `
layer           folders                          may import                            meaning

program         cmd/slipway                      composition client feature upstream   the one binary and its verbs
program         cmd/slipway                      extension engine configuration identity plumbing
host-program    cmd/slipway-supervisor           feature upstream engine plumbing      supervises the processes of a host, so small
pod-program     cmd/slipway-cni cmd/pause        feature plumbing                      started once a pod, so small
pod-program     cmd/slipway-deployer             feature plumbing                      started once a deployment, so small
pod-program     cmd/slipway-egress-router        feature plumbing                      in egress router pods, whose images contain nothing else
pod-program     cmd/slipway-oauth-proxy          feature plumbing                      in pods of applications, so small
pod-program     cmd/slipway-builder              feature plumbing                      BuildKit, kept out of the one binary
client-program  cmd/oc                           client plumbing                       the client alone, on every system
composition     platform                         feature upstream extension engine     the components of each process, created from the configuration
composition     platform                         reload configuration identity plumbing
client          cli                              plumbing                              the verbs of oc
feature         apigroup/* oauth router          engine identity plumbing              what the product does
feature         registry network storage/*       engine identity plumbing
feature         builder catalog/* console        engine identity plumbing
feature         bootstrap                        engine identity plumbing
feature         packaging/*                      plumbing                              files for other programs
upstream        kube node                        engine identity plumbing              embedded Kubernetes
extension       admission/* controller/*         engine identity plumbing              checks and controllers of no API group
engine          apiserver admission controller   identity plumbing                     serves, checks, reconciles what it is given
engine          supervisor                       plumbing                              runs processes and their components, and serves their state
configuration   config                           plumbing                              the configuration files
reload          config/reload                    configuration plumbing                applies their changes without a restart
identity        pki                              plumbing                              authorities, certificates, kubeconfigs
plumbing        internal/*                       plumbing                              knows nothing of the product
scenario        test/scenario/*                  test-kit plumbing                     proofs on a real cluster
scenario        test/s3                          test-kit plumbing
suite           test/netpol                      test-kit plumbing                     runs Kubernetes' own tests
scenario        test/faults                      test-kit plumbing
benchmark       test/bench                       upstream identity plumbing            compares the product with stock programs
benchmark       test/measure                     test-kit feature plumbing             measures several hosts, networks, and many nodes
example         examples/*                       feature plumbing                      examples for users to copy, and their tests
test-kit        test/kit                         plumbing                              boots the real binary
tool            hack/*                           plumbing                              for work on the repository
`

// exceptions lists the imports between units that are allowed although the rules for layers forbid
// them.
var exceptions = []exception{
	{"kube/volumeplugin", "storage/flexvolume", "passes the engine to upstream as a volume plugin"},
	{"test/scenario/csi", "storage/csi", "a second driver, which the test serves and inspects, in addition to the cluster's own"},
	{"test/s3", "registry/s3", "the storage driver alone, with a real server"},
	{"hack/docs", "cli", "writes the reference of its commands"},
	{"hack/docs", "cmd/slipway", "writes the reference of its commands"},
	{"hack/docs", "config", "writes the reference of its keys"},
	{"hack/docs", "apigroup/build", "writes the reference of its metrics"},
	{"hack/docs", "kube", "writes the reference of its metrics"},
	{"hack/docs", "oauth", "writes the reference of its metrics"},
	{"hack/docs", "router", "writes the reference of its metrics"},
	{"hack/docs", "storage/csi", "writes the reference of its metrics"},
	{"test/bench", "storage/flexvolume", "measures the engine alone, which has no program of its own"},
	{"test/bench", "storage/csi", "serves the driver whose volumes both sides attach"},
	{"test/measure", "apigroup/metrics", "measures the component alone, which has no program of its own"},
	{"test/measure", "controller", "names the dependencies of that component"},
}

// pure lists packages of types and side-effect-free functions, which every layer except plumbing
// may import.
var pure = []exemption{
	{"registry/registryname", "decides the names of the registry, which its certificate, its clients and builds need"},
	{"network/hostaddr", "finds the addresses of the machine, which node, certificates and API server announce"},
	{"oauth/scope", "evaluates the scopes of tokens, which the API groups of projects and reviews apply too"},
	{"apigroup/apps/rollout", "defines how deployments are stored, which the client shows and changes too"},
	{"cli/manifest", "converts objects to current API versions, also those in templates"},
	{"apigroup/template/process", "fills in the parameters of templates, which the client does too"},
	{"apigroup/build/instantiate", "defines how builds are created and stored, which the client shows and changes too"},
	{"apigroup/image/pull", "checks permission to pull from an image stream, which deployments, builds and image triggers need"},
	{"apigroup/image/record", "creates the record of an image for both pushes and imports"},
	{"apigroup/image/retention", "decides which images pruning removes, which the client does and the server previews"},
	{"apigroup/security/scc", "decides which security context constraints accept a pod; the start creates the default ones"},
	{"apigroup/project/standard", "the default template of projects, which the client prints too"},
	{"kube/scheduler/policy", "the Policy of OpenShift 3's scheduler, which the configuration reads"},
	{"packaging/monitoring", "files for Prometheus and Grafana, which a verb prints and a sample contains"},
	{"bootstrap/policy", "the default roles and bindings, which the client prints and reconciles too"},
	{"oauth/page", "the login pages, which the client prints as templates for custom pages"},
}

// upstreamOnly contains module paths that only units in the upstream and suite layers may import.
var upstreamOnly = []string{"k8s.io/kubernetes"}

// light lists programs that must not depend on heavy modules, even indirectly.
var light = []reach{
	{"cmd/pause", []string{"k8s.io/", "github.com/"}, "runs once a pod: keep it to the standard library and golang.org/x"},
	{"cmd/slipway-cni", []string{"k8s.io/"}, "runs for each pod: use sigs.k8s.io/knftables and netlink, no Kubernetes client"},
	{"cmd/slipway-egress-router", []string{"k8s.io/"}, "runs for each egress router: use netlink and nftables, no Kubernetes client"},
	{"cmd/slipway-oauth-proxy", []string{"k8s.io/", "github.com/"}, "runs in pods of applications: keep it to the standard library"},
	{"cmd/oc", []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server/"}, "is the client alone: use k8s.io/kubectl and client-go"},
}

// bannedFolders contains folder names that do not describe the folder's content.
var bannedFolders = []string{"pkg", "util", "utils", "common", "misc", "helper", "helpers", "shared", "lib", "base"}

// programFolders contains the folders that contain programs.
var programFolders = []exemption{
	{"cmd", "programs for users"},
	{"hack", "tools for work on the repository"},
	{"examples", "examples for users to copy"},
	{"test/bench", "a measurement uses the machine for minutes, so go test must not start it"},
	{"test/netpol/agnhost", "the program in the pods of the tests"},
}

// namesRegistries contains the files that may contain a registry's host name.
var namesRegistries = []exemption{
	{"go.sum", "paths of modules"},
	{"test/scenario/pod/egressmanifests_test.go", "the guide's manifests as printed; nothing is requested from the registry"},
	{"node/image/archive_test.go", "a short name stands for an image there, for every client; nothing is requested from it"},
}

// fileLimits maps files to their maximum lengths, in lines. The entry "" applies to every file that
// is neither listed nor exempt.
var fileLimits = map[string]int{"": 500, "cmd/slipway/main.go": 50}

// longFiles contains the files that may be longer than the limit.
var longFiles = []exemption{
	{"go.sum", "written by the go tool"},
	{"hack/tools/go.mod", "written by the go tool"},
	{"hack/tools/go.sum", "written by the go tool"},
	{"console/web/package-lock.json", "written by npm"},
	{"docs/coverage.tsv", "one line for each row of five documents"},
	{"apigroup/servicecatalog/v1beta1/zz_generated.deepcopy.go", "written by deepcopy-gen"},
	{"apigroup/servicecatalog/v1beta1/zz_generated.openapi.go", "written by openapi-gen"},
	{"catalog/ansible/v1alpha1/zz_generated.openapi.go", "written by openapi-gen"},
	{"bootstrap/policy/testdata/matrix.tsv", "one line for each role and group of resources"},
	{"docs/dependencies.md", "written by hack/dependencies, one line for each linked module"},
}

// exception allows packages in one folder, from, to import packages in another folder, to.
type exception struct{ from, to, reason string }

// exemption is a path that is exempt from a rule, or a folder that a rule allows.
type exemption struct{ path, reason string }

// reach forbids a package from depending, directly or indirectly, on packages whose import paths
// have one of the prefixes.
type reach struct {
	folder    string
	forbidden []string
	reason    string
}
