package source

import "testing"

func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"requirements.txt": Requirements, "a/requirements-gpu.txt": Requirements, "requirements_2.13.txt": Requirements, "test-requirements.in": Requirements,
		"requirements/base.txt": Requirements, "constraints.txt": Requirements, "setup.cfg": Requirements, "Dockerfile": Dockerfile, "docker/Dockerfile.npu": Dockerfile,
		"gpu.Dockerfile": Dockerfile, "Containerfile": Dockerfile, "Dockerfile-uv": Dockerfile, "Pipfile": TOML, ".deepspeed_env": Shell,
		"notes.txt": Other, "data/requirements.csv": Other, "Dockerfile.md": Other, "Dockerfile.jinja": Other, "dockerfile.py": Python, "requirements.py": Python, "requirementsbot.txt": Other,
		"uv.lock": Other, "a.dockerignore": Other, "pipfile.py": Python, "train.sh": Shell,
	} {
		if got := KindOf(name, nil); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
