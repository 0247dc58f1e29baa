/* folder.h -- lets a test suite run in a folder of its own: .init = enter_folder, .fini =
 * leave_folder. */
#ifndef ETC_TESTS_FOLDER_H
#define ETC_TESTS_FOLDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/etc_test_XXXXXX";

static void enter_folder(void)
{
    cr_assert(mkdtemp(folder) && !chdir(folder));
}

static void leave_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert(!chdir("/") && !system(command));
}

#endif
