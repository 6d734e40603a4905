package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPictureKeepsItsFrequentColors(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	picture := image.NewRGBA(image.Rect(0, 0, 200, 2))
	blue := color.RGBA{0, 0, 255, 255}
	for x := range 200 {
		picture.Set(x, 0, blue)
		picture.Set(x, 1, color.RGBA{uint8(x), 0, 0, 255})
	}
	var content bytes.Buffer
	if err := png.Encode(&content, picture); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(from, "a.png"), filepath.Join(from, "other.png"), filepath.Join(to, "a.png")} {
		if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(from, to); err != nil {
		t.Fatal(err)
	}
	small, err := os.ReadFile(filepath.Join(to, "a.png"))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	palette, ok := decoded.(*image.Paletted)
	if !ok || len(palette.Palette) != paletteSize || rgba(decoded.At(7, 0)) != blue {
		t.Errorf("got a %T with the color %v", decoded, decoded.At(7, 0))
	}
	if _, err := os.Stat(filepath.Join(to, "other.png")); err == nil {
		t.Error("a picture was added that the guide does not have")
	}
}

func TestScriptsCreateEveryPictureOfGuide(t *testing.T) {
	scripts, err := filepath.Glob("../../test/scenario/console/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// A script saves a screenshot under a name, which is either an argument or a key in a table of
	// pages.
	saved := regexp.MustCompile(`(?m)(?:shoot|check)\(\w+, '([\w-]+)'\)|^  '?([\w-]+)'?: \[`)
	names := map[string]bool{}
	for _, script := range scripts {
		content, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range saved.FindAllStringSubmatch(string(content), -1) {
			names[match[1]+match[2]] = true
		}
	}
	guide, err := os.ReadFile("../../docs/console/index.md")
	if err != nil {
		t.Fatal(err)
	}
	pictures := regexp.MustCompile(`\(([\w-]+)\.png\)`).FindAllStringSubmatch(string(guide), -1)
	if len(pictures) == 0 {
		t.Error("the guide has no picture")
	}
	for _, picture := range pictures {
		if !names[strings.TrimSuffix(picture[1], "-dark")] {
			t.Errorf("no script creates the picture %q", picture[1])
		}
		if info, err := os.Stat("../../docs/console/" + picture[1] + ".png"); err != nil || info.Size() == 0 {
			t.Errorf("picture %q: %v, or it is empty", picture[1], err)
		}
	}
}
