package content

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestAppendAddsLayersAndMergesConfiguration(t *testing.T) {
	host, dir := serve(t), t.TempDir()
	push(t, host+"/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "1"})))
	layer := write(t, dir, "layer.tar", tarLayer(t, entry{name: "b", content: "2"}))
	args := []string{"append", "--from", host + "/app:v1", "--created-at", "2018-10-10T00:00:00Z", "--image", `{"Entrypoint":["/bin/new"],"Cmd":null,"Labels":{"tier":"web"},"WorkingDir":"/image"}`,
		"--meta", `{"author":"shop","config":{"WorkingDir":"/meta"}}`, layer}
	if out, _, err := oc(t, append(args, "--to", host+"/app:trial", "--dry-run")...); err != nil || !strings.Contains(out, "with 2 layers") {
		t.Fatalf("%v, %s", err, out)
	}
	if got := digestOf(t, host+"/app:trial"); got != "" {
		t.Error("a dry run pushes")
	}
	out, _, err := oc(t, append(args, "--to", host+"/app:v2")...)
	if err != nil {
		t.Fatal(err)
	}
	digest := digestOf(t, host+"/app:v2")
	if want := "Pushed image " + digest + " to " + host + "/app:v2\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
	parsed, err := name.ParseReference(host + "/app:v2")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; strings.Join(c.Entrypoint, " ") != "/bin/new" || len(c.Cmd) != 0 || c.User != "1001" || config.Author != "shop" ||
		c.WorkingDir != "/meta" || len(c.Labels) != 2 || c.Labels["tier"] != "web" || len(c.Env) != 2 ||
		config.Created.Format("2006-01-02") != "2018-10-10" || len(config.RootFS.DiffIDs) != 2 || len(config.History) != 2 {
		t.Errorf("configuration %+v", config)
	}
	fails(t, "--to", "append", layer)
	fails(t, "specify layers", "append", "--to", host+"/rex:1")
	fails(t, "must be a time", append(args, "--to", host+"/rex:1", "--created-at=yesterday")...)
	fails(t, "decode --image", append(args, "--to", host+"/rex:1", "--image={")...)
	fails(t, "rootfs", append(args, "--to", host+"/rex:1", `--meta={"rootfs":{"diff_ids":[]}}`)...)
	fails(t, "read layer", "append", "--to", host+"/rex:1", dir+"/missing.tar")
	fails(t, "set a tag", "append", "--to", host+"/rex@"+digest, layer)
}

func TestAppendIsReproducible(t *testing.T) {
	host := serve(t)
	layer := write(t, t.TempDir(), "layer.tar", tarLayer(t, entry{name: "b", content: "2"}))
	for _, tag := range []string{"one", "two"} {
		if _, _, err := oc(t, "append", "--to", host+"/data:"+tag, "--created-at=0", "--drop-history", layer); err != nil {
			t.Fatal(err)
		}
	}
	if name, two := digestOf(t, host+"/data:one"), digestOf(t, host+"/data:two"); name == "" || name != two {
		t.Errorf("images %q and %q", name, two)
	}
}
