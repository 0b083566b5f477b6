//go:build ignore

// Command wheel makes Python wheels that carry the binary and nothing else, so that `pip install trainvet` works where people train:
//
//	go run ./cmd/gen/wheel.go -o dist                    for all systems
//	go run ./cmd/gen/wheel.go -o dist -os linux -arch amd64
//
// A wheel is a zip file (PEP 427); the binary lies in NAME.data/scripts, from where pip puts it on the path. Two runs on one commit give
// the same bytes.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// platforms are the tags of PEP 425 for the systems. A static binary runs on every Linux; the tags say the oldest that pip knows.
var platforms = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_11_0_x86_64",
	"darwin/arm64":  "macosx_11_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

func main() {
	log.SetFlags(0)
	out := flag.String("o", "dist", "folder to write to")
	system := flag.String("os", "", "one system instead of all")
	arch := flag.String("arch", "", "one architecture instead of all")
	binary := flag.String("binary", "", "a binary that is built already, for one system")
	version := flag.String("version", "", "release; left out: that of cmd/trainvet/version.go")
	flag.Parse()
	if *binary != "" && (*system == "" || *arch == "") {
		log.Fatal("-binary wants -os and -arch, which say what it is for")
	}
	_, self, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(self), "..", "..")
	if *version == "" {
		*version = releaseOf(root)
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		log.Fatal(err)
	}
	made := 0
	for platform, tag := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		if *system != "" && goos != *system || *arch != "" && goarch != *arch {
			continue
		}
		w := wheel{version: python(*version), tag: "py3-none-" + tag}
		if *binary != "" {
			w.binary = read("", *binary)
		} else {
			w.binary = build(root, goos, goarch)
		}
		w.program = "trainvet"
		if goos == "windows" {
			w.program += ".exe"
		}
		w.readme, w.license = read(root, "README.md"), read(root, "LICENSE")
		name := filepath.Join(*out, "trainvet-"+w.version+"-"+w.tag+".whl")
		if err := os.WriteFile(name, w.zip(), 0o666); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name)
		made++
	}
	if made == 0 {
		log.Fatalf("no wheel is made for %s/%s", *system, *arch)
	}
}

func read(root, name string) []byte {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		log.Fatal(err)
	}
	return text
}

func releaseOf(root string) string {
	match := regexp.MustCompile(`const release = "([^"]+)"`).FindSubmatch(read(root, "cmd/trainvet/version.go"))
	if match == nil {
		log.Fatal("cmd/trainvet/version.go states no release")
	}
	return string(match[1])
}

// python writes a version of Go's as PEP 440 wants it: v1.2.0-rc.1 -> 1.2.0rc1, and anything else behind a - as a development release.
func python(version string) string {
	number, extra, pre := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if !pre {
		return number
	}
	if match := regexp.MustCompile(`^(alpha|beta|rc)\.?(\d+)$`).FindStringSubmatch(extra); match != nil {
		return number + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[match[1]] + match[2]
	}
	return number + ".dev0"
}

func build(root, goos, goarch string) []byte {
	folder, err := os.MkdirTemp("", "wheel")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "trainvet")
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", file, "./cmd/trainvet")
	command.Dir, command.Stderr = root, os.Stderr
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if err := command.Run(); err != nil {
		log.Fatalf("%s/%s: %v", goos, goarch, err)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return binary
}

// wheel is what goes into one file.
type wheel struct {
	version, tag, program string
	binary                []byte
	readme, license       []byte
}

// zip packs the files, and as the last one the list of them all with their checksums.
func (w *wheel) zip() []byte {
	info := "trainvet-" + w.version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: trainvet\nVersion: " + w.version + "\nSummary: go vet for training runs\n" +
		"Home-page: https://github.com/trainvet/trainvet\nLicense: MIT\nRequires-Python: >=3.7\nKeywords: pytorch,deepspeed,lint,training\n" +
		"Classifier: Environment :: Console\nClassifier: Intended Audience :: Developers\nClassifier: License :: OSI Approved :: MIT License\n" +
		"Classifier: Topic :: Software Development :: Quality Assurance\nDescription-Content-Type: text/markdown\n\n" + string(w.readme)
	description := "Wheel-Version: 1.0\nGenerator: trainvet\nRoot-Is-Purelib: false\n"
	interpreter, abi, systems := "", "", ""
	if parts := strings.SplitN(w.tag, "-", 3); len(parts) == 3 {
		interpreter, abi, systems = parts[0], parts[1], parts[2]
	}
	for system := range strings.SplitSeq(systems, ".") {
		description += "Tag: " + interpreter + "-" + abi + "-" + system + "\n"
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	var record strings.Builder
	add := func(name string, mode fs.FileMode, content []byte) {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(mode)
		into, err := archive.CreateHeader(header)
		if err == nil {
			_, err = into.Write(content)
		}
		if err != nil {
			log.Fatal(err)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
	}
	add("trainvet-"+w.version+".data/scripts/"+w.program, 0o755, w.binary)
	add(info+"METADATA", 0o644, []byte(metadata))
	add(info+"WHEEL", 0o644, []byte(description))
	add(info+"licenses/LICENSE", 0o644, w.license)
	record.WriteString(info + "RECORD,,\n")
	list := record.String()
	add(info+"RECORD", 0o644, []byte(list))
	if err := archive.Close(); err != nil {
		log.Fatal(err)
	}
	return packed.Bytes()
}
