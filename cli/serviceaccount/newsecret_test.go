package serviceaccount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

type constructor = func(util.Factory, genericiooptions.IOStreams) *cobra.Command

func TestSecretsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"key", ".dockercfg", ".dockerconfigjson"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, args, kind string
		data             map[string]string
		failure          string
	}{
		{"file", "DIR/key", "Opaque", map[string]string{"key": "content of key"}, ""},
		{"file with a key", "ssh=DIR/key", "Opaque", map[string]string{"ssh": "content of key"}, ""},
		{"credentials of a registry", "DIR/.dockerconfigjson", "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": "content of .dockerconfigjson"}, ""},
		{"old credentials of a registry", ".dockercfg=DIR/key", "kubernetes.io/dockercfg", map[string]string{".dockercfg": "content of key"}, ""},
		{"type of the user", "DIR/.dockercfg --type=Opaque", "Opaque", map[string]string{".dockercfg": "content of .dockercfg"}, ""},
		{"unknown type", "DIR/key --type=own", "", nil, `unknown secret type "own"; to use it, add --confirm`},
		{"unknown type that is confirmed", "DIR/key --type=own --confirm", "own", map[string]string{"key": "content of key"}, ""},
		{"two equals signs", "a=b=DIR/key", "", nil, "Key names or file paths cannot contain '='."},
		{"missing file", "DIR/none", "", nil, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"web"}, strings.Fields(strings.ReplaceAll(tt.args, "DIR", dir))...)
			checkSecret(t, newSecretsNew, append(args, "-oyaml"), tt.kind, tt.data, tt.failure)
		})
	}
}

// checkSecret checks the secret that a command prints. If want is not empty, the command must fail
// with an error that contains want.
func checkSecret(t *testing.T, create constructor, args []string, kind string, data map[string]string, want string) {
	t.Helper()
	server := objectstest.NewServer(t, nil)
	out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command { return create(server.Factory(t), streams) }, args...)
	if want != "" {
		if !strings.Contains(failure, want) {
			t.Errorf("got failure %q, want %q", failure, want)
		}
		return
	}
	secret := &corev1.Secret{}
	if err := yaml.Unmarshal([]byte(out), secret); err != nil || failure != "" {
		t.Fatalf("got %q, failure %q, error %v", out, failure, err)
	}
	got := map[string]string{}
	for key, value := range secret.Data {
		got[key] = string(value)
	}
	if diff := cmp.Diff(data, got); diff != "" || string(secret.Type) != kind || secret.Name != "web" {
		t.Errorf("got secret %q of type %q, want type %q; data (-want +got):\n%s", secret.Name, secret.Type, kind, diff)
	}
}

func TestSecretsForGitRepositories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, args, failure string
		create              constructor
		want                []string // substrings that the request must contain
	}{
		{"user and password", "web --username=alice --password=secret", "", newSecretsBasicAuth, []string{"kubernetes.io/basic-auth", "alice", "secret"}},
		{"password and authority", "web --password=secret --ca-cert=FILE", "", newSecretsBasicAuth, []string{"kubernetes.io/basic-auth", "secret", "ca.crt", "content"}},
		{"neither user nor password", "web", "set a user with --username or a password", newSecretsBasicAuth, nil},
		{"password and prompt", "web --password=secret --prompt", "must provide either --prompt or --password", newSecretsBasicAuth, nil},
		{"SSH key", "web --ssh-privatekey=FILE --gitconfig=FILE", "", newSecretsSSHAuth, []string{"kubernetes.io/ssh-auth", "ssh-privatekey", ".gitconfig", "content"}},
		{"no SSH key", "web", "set the file of the key with --ssh-privatekey", newSecretsSSHAuth, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, nil)
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return tt.create(server.Factory(t), streams)
			}, strings.Fields(strings.ReplaceAll(tt.args, "FILE", file))...)
			writes := strings.Join(server.Writes(), "\n")
			if tt.failure != "" {
				if !strings.Contains(failure, tt.failure) || writes != "" {
					t.Errorf("got failure %q, requests %q, want failure %q", failure, writes, tt.failure)
				}
				return
			}
			if failure != "" || out != "secret/web created\n" || !strings.HasPrefix(writes, "POST /api/v1/namespaces/shop/secrets ") {
				t.Errorf("got %q, failure %q, requests %q", out, failure, writes)
			}
			for _, text := range tt.want {
				if !strings.Contains(writes, text) {
					t.Errorf("the request lacks %q: %q", text, writes)
				}
			}
		})
	}
}

func TestSecretsAreLinkedToAccounts(t *testing.T) {
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "builder", "namespace": "shop"},
		"secrets": []any{map[string]any{"name": "old"}}, "imagePullSecrets": []any{map[string]any{"name": "old"}}}
	responses := map[string]any{
		"GET /api/v1/namespaces/shop/serviceaccounts/builder": account,
		"GET /api/v1/namespaces/shop/secrets/key":             map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key"}},
		"GET /api/v1/namespaces/shop/secrets/old":             map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "old"}},
	}
	link := func(factory util.Factory, _ genericiooptions.IOStreams) *cobra.Command {
		return newSecretsLink(factory, "link")
	}
	for _, tt := range []struct {
		name, args, failure string
		create              constructor
		mounts, pulls       []string
	}{
		{"mount by default", "builder key", "", link, []string{"old", "key"}, []string{"old"}},
		{"pull", "builder key --for=pull", "", link, []string{"old"}, []string{"old", "key"}},
		{"both, with types", "serviceaccount/builder secret/key --for=pull,mount", "", link, []string{"old", "key"}, []string{"old", "key"}},
		{"linked already", "builder old", "", link, []string{"old"}, []string{"old"}},
		{"unknown use", "builder key --for=build", `parse --for "build": must be mount or pull`, link, nil, nil},
		{"missing secret", "builder none", "not find", link, nil, nil},
		{"unlink", "builder old", "", newSecretsUnlink, nil, nil},
		{"unlink a secret that is not linked", "builder key", "secrets not linked to service account", newSecretsUnlink, []string{"old"}, []string{"old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, responses)
			_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return tt.create(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("got failure %q, want %q", failure, tt.failure)
			}
			if tt.failure != "" && tt.mounts == nil {
				if writes := server.Writes(); len(writes) > 0 {
					t.Errorf("got requests %q", writes)
				}
				return
			}
			stored := storedAccount(t, server.Writes())
			var mounted, pulled []string
			for _, secret := range stored.Secrets {
				mounted = append(mounted, secret.Name)
			}
			for _, secret := range stored.ImagePullSecrets {
				pulled = append(pulled, secret.Name)
			}
			if diff := cmp.Diff([][]string{tt.mounts, tt.pulls}, [][]string{mounted, pulled}); diff != "" {
				t.Errorf("secrets to mount, secrets to pull (-want +got):\n%s", diff)
			}
		})
	}
}

// storedAccount returns the service account from the only write request.
func storedAccount(t *testing.T, writes []string) *corev1.ServiceAccount {
	t.Helper()
	if len(writes) != 1 {
		t.Fatalf("got requests %q, want one", writes)
	}
	_, body, ok := strings.Cut(writes[0], "PUT /api/v1/namespaces/shop/serviceaccounts/builder ")
	account := &corev1.ServiceAccount{}
	if !ok {
		t.Fatalf("got request %q", writes[0])
	}
	if err := decode([]byte(body), account); err != nil {
		t.Fatal(err)
	}
	return account
}

// decode decodes an object in protobuf or JSON.
func decode(body []byte, account *corev1.ServiceAccount) error {
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, account)
	return err
}
