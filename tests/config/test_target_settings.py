"""The sections of targets: what they may say, from where, and a sentence for each mistake in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from metaharvest.config.settings import Settings, load
from metaharvest.errors import SettingsError


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    file = folder / "metaharvest.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ or {})


def problems(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """What is told, without the file's name."""
    with pytest.raises(SettingsError) as raised:
        read(folder, text, environ)
    return [problem.replace(f"{folder / 'metaharvest.toml'}: ", "") for problem in raised.value.problems]


MISTAKES = {
    '[target]\nkind = "folder"\n': "[target]: the kind 'folder' needs folder.",
    '[target]\nkind = "folder"\nfolder = ""\n': "[target] folder = '': it must be the path of a folder.",
    '[target]\nkind = "folder"\nfolder = ["a"]\n': "[target] folder = ['a']: it must be a path in quotes.",
    '[target]\nkind = "folder"\nfolder = "~nobody-here/x"\n': (
        "[target] folder = '~nobody-here/x': it begins with ~, but there is no such home folder; "
        "write the path out in full."
    ),
    '[target]\nkind = "folder"\nfolder = "x"\nlayout = "round"\n': (
        "[target] layout = 'round': input should be 'tree' or 'flat'."
    ),
    '[target]\nkind = "folder"\nfolder = "x"\nfiles_per_folder = 0\n': (
        "[target] files_per_folder = 0: input should be greater than 0."
    ),
    '[target]\nfolder = "x"\n': "[target]: folder means nothing to the kind 'embedded': it needs no other key.",
    '[target]\nkind = "folder"\nfolder = "x"\nurl = "https://e.org"\ntoken = "env:X"\n': (
        "[target]: token and url mean nothing to the kind 'folder': it uses files_per_folder, folder, layout."
    ),
    'target = "folder"\n': (
        "[target] = 'folder': it must be a section of its own, headed by its name in square brackets."
    ),
    '[target]\ntoken = "my-token"\nkind = "none"\n': (
        "[target] token = (not shown): a secret is never written here: name where it is, as env:NAME, file:PATH or "
        "keyring:SERVICE/USERNAME."
    ),
    '[target]\nkind = "none"\nurl = "https://me:my-token@e.org"\n': (
        "[target] url = (not shown): a user name or password is never written here: name where it is, as env:NAME, "
        "file:PATH or keyring:SERVICE/USERNAME."
    ),
    '[sites."alder creek".target]\nkind = "folder"\n': (
        "[sites.\"alder creek\".target]: the kind 'folder' needs folder."
    ),
    '[sites."a".target]\nkind = "folder"\nfolder = "x"\nlayout = 3\n': (
        "[sites.\"a\".target] layout = 3: input should be 'tree' or 'flat'."
    ),
    '[sites."a"]\ntarget = "folder"\n': (
        "[sites.\"a\"] target = 'folder': it must be a section of its own, headed by its name in square brackets."
    ),
    '[sites."a".target.options]\nx = 1\n': (
        "[sites.\"a\".target]: options means nothing to the kind 'embedded': it needs no other key."
    ),
    **{
        f'[targets.old]\nkind = "none"\n[targets.{name}]\nkind = "none"\n': (
            f"[targets]: give [targets.{name}] another name: commands call {means} so."
        )
        for name, means in (("target", "the one in [target]"), ("embedded", "the embedded one"))
    },
    '[targets.old]\nkind = "folder"\n': "[targets.\"old\"]: the kind 'folder' needs folder.",
    '[targets]\nold = "x"\n': (
        "[targets.\"old\"] = 'x': it must be a section of its own, headed by its name in square brackets."
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_section_and_what_would_be_right(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == [MISTAKES[text]]


@pytest.mark.parametrize("section", ["target", "targets.old", 'sites."a".target'])
def test_a_key_that_there_is_not_is_told_with_those_that_there_are(tmp_path: Path, section: str) -> None:
    [problem] = problems(tmp_path, f'[{section}]\nkind = "folder"\nfolder = "x"\nfoldr = "y"\n')
    assert "foldr: there is no such key. Known are: kind, url, " in problem
    assert ", folder, layout, files_per_folder, options." in problem


def test_a_kind_that_there_is_not_is_told_wherever_it_is(tmp_path: Path) -> None:
    sections = '[target]\nkind = "box"\n[targets.old]\nkind = "crate"\n[sites."a".target]\nkind = "bag"\n'
    told = problems(tmp_path, sections)
    assert [problem.partition(":")[0] for problem in told] == [
        "[target] kind = 'box'",
        "[sites.\"a\".target] kind = 'bag'",
        "[targets.\"old\"] kind = 'crate'",
    ]
    assert all("input should be 'embedded' or 'none' or " in problem for problem in told)


def test_a_site_s_own_section_changes_single_keys_of_the_same_kind(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        '[target]\nkind = "folder"\nfolder = "all"\nfiles_per_folder = 7\n'
        '[sites."flat".target]\nlayout = "flat"\n'
        '[sites."elsewhere".target]\nfolder = "own"\n'
        '[sites."rehearsed".target]\nkind = "none"\n'
        '[sites."inside".target]\nkind = "embedded"\n'
        '[sites."files"]\nfile_folder = "/srv"\n',
    )
    described = {
        name: (target.kind, str(target.folder), target.layout, target.files_per_folder)
        for name in ("any", "flat", "elsewhere", "rehearsed", "inside", "files")
        if (target := settings.target_of(name))
    }
    assert described == {
        "any": ("folder", "all", "tree", 7),
        "flat": ("folder", "all", "flat", 7),
        "elsewhere": ("folder", "own", "tree", 7),
        "rehearsed": ("none", "None", "tree", 5000),
        "inside": ("embedded", "None", "tree", 5000),
        "files": ("folder", "all", "tree", 7),
    }


def test_the_target_is_set_from_the_environment_too(tmp_path: Path) -> None:
    environ = {
        "METAHARVEST_TARGET__KIND": "folder",
        "METAHARVEST_TARGET__FOLDER": "~",
        "METAHARVEST_TARGET__FILES_PER_FOLDER": "9",
    }
    settings = read(tmp_path, '[sites."own".target]\nlayout = "flat"\n', environ)
    assert (settings.target.kind, settings.target.files_per_folder) == ("folder", 9)
    assert settings.path(settings.target.folder or Path()) == Path.home().resolve()
    assert (settings.target_of("own").layout, settings.target_of("own").files_per_folder) == ("flat", 9)


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"KIND": "box"}, "METAHARVEST_TARGET__KIND in the environment = 'box': input should be 'embedded' or "),
        ({"KIND": "folder"}, "[target]: the kind 'folder' needs folder."),
        (
            {"KIND": "folder", "FOLDER": "x", "FILES_PER_FOLDER": "many"},
            "METAHARVEST_TARGET__FILES_PER_FOLDER in the environment = 'many': it must be a whole number.",
        ),
        ({"TOKEN": "my-token"}, "METAHARVEST_TARGET__TOKEN in the environment = (not shown): a secret is never "),
        ({"COLOUR": "red"}, "METAHARVEST_TARGET__COLOUR in the environment: there is no such key. Known are: kind"),
    ],
)
def test_a_mistake_in_the_environment_is_told_with_the_variable(
    tmp_path: Path, environ: dict[str, str], sentence: str
) -> None:
    variables = {f"METAHARVEST_TARGET__{key}": value for key, value in environ.items()}
    [problem] = problems(tmp_path, "", variables)
    assert problem.startswith(sentence)
    assert "my-token" not in problem


def test_a_word_in_the_environment_is_enough_for_a_rehearsal(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        '[target]\nkind = "folder"\nfolder = "x"\nlayout = "flat"\n[sites."own".target]\nfolder = "y"\n',
        {"METAHARVEST_TARGET__KIND": "none"},
    )
    assert (settings.target.kind, settings.target_of("own").kind) == ("none", "none")
